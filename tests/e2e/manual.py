"""Keeps a cluster running for manual work: `python -m tests.e2e.manual`.

Prints the KUBECONFIG path. Stops all processes at Ctrl-C, at SIGTERM, or if it is killed itself.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import threading
from pathlib import Path

from .binaries.build import say
from .cluster import Workspace, choose
from .definitions import definition_files
from .kubelet import FakeKubelet
from .realnode.node import RealNode, missing
from .volumes import Provisioner


def options() -> argparse.Namespace:
    """Returns the parsed command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.manual", description=__doc__)
    parser.add_argument("--nodes", type=int, default=3, help="fake nodes (default 3, 0 for none)")
    parser.add_argument("--real", action="store_true", help="also a real node, tainted")
    parser.add_argument("--link", type=Path, help="also make this symbolic link to the kubeconfig")
    return parser.parse_args()


def wait_for_signal() -> None:
    """Waits for Ctrl-C or SIGTERM."""
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()


def main() -> int:
    """Starts the cluster that the environment chooses, and waits for a signal."""
    wanted = options()
    choice = choose(os.environ)
    if isinstance(choice, str):
        say(choice)
        return 1
    place = Workspace()
    cluster = choice.make(place.directory, definition_files(os.environ))
    try:
        with contextlib.ExitStack() as stack:
            stack.callback(cluster.stop)
            cluster.start()
            local = cluster.backend == "local"
            if local:
                stack.enter_context(Provisioner(cluster.kubeconfig))
            if wanted.nodes:
                names = [f"fake-{number}" for number in range(wanted.nodes)]
                kubelet = FakeKubelet(
                    cluster.kubeconfig, names, context=cluster.context, tainted=not local
                )
                stack.enter_context(kubelet)
            if wanted.real:
                problem = missing(cluster.backend)
                if problem is not None:
                    say(problem)
                    return 1
                stack.enter_context(RealNode(cluster.kubeconfig, place.directory / "node"))
            if wanted.link is not None:
                wanted.link.unlink(missing_ok=True)
                wanted.link.symlink_to(cluster.kubeconfig)
                stack.callback(wanted.link.unlink, missing_ok=True)
            say(f"export KUBECONFIG={cluster.kubeconfig}")
            say(f"{cluster.backend} cluster is up; Ctrl-C stops it")
            wait_for_signal()
    finally:
        place.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
