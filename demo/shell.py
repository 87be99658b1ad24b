"""`make shell`: a shell in which kubectl and `kubectl tapp` use the embedded cluster.

The process runs the cluster and listens on a socket. The first directory of PATH has a program
`kubectl`, which runs `demo/shell_kubectl.py`. This program starts the plugin for `kubectl tapp`,
and sends all other calls to the socket. In the process, `Calls` answers these calls as
`demo.kubectl` does for the page.
"""

import json
import os
import shlex
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from demo.kubectl import Kubectl, RefusedError, split
from demo.service import ROOT, serve
from demo.stage import Stage
from demo.web import BAD_IMAGE, running_in_real_time
from kubectl_tapp.cluster.kubectl import CallResult
from simulator.api.store import ApiError
from simulator.objects.clock import EPOCH
from simulator.objects.kinds import UnknownKindError

SOCKET = "TAPP_DEMO_SOCKET"  # Environment variable with the path of the socket
_IDENTITY = {"apiVersion", "kind", "metadata"}
WELCOME = f"""\
A shell on an embedded cluster with TApp: only the service is real. Type exit to end it.
  kubectl apply -f examples/rolling-update/1-create.yaml
  kubectl tapp status rolling
  kubectl tapp set image rolling web=nginx:1.29 --wait
docs/tutorial.md goes on from here. No node can pull the image {BAD_IMAGE}.
This kubectl has only apply -f, create -f, delete, patch, and get, which prints names, or -o yaml.
"""


class Calls:
    """Answers the calls of kubectl that a person or the plugin makes in the demo's shell."""

    def __init__(self, kubectl: Kubectl) -> None:
        """Stores the stand-in for kubectl, which answers all calls that the plugin makes."""
        self._kubectl = kubectl
        # Registers the kind TApp now. Without this, the cluster would know the kind only after the
        # first TApp is created, and earlier calls such as `kubectl get tapps` would fail.
        kubectl.world.kinds.of({"apiVersion": "apps.tkestack.io/v1", "kind": "TApp"})

    def answer(self, arguments: list[str], stdin: str) -> Iterator[dict[str, Any]]:
        """Runs one call, and yields the parts of its answer as JSON objects.

        - A part with `out` has a text for standard output. There may be any number of these parts.
        - The last part has `code` and `err`: the exit code and the error output.

        The output of a watch comes in many parts. The watch is stopped when its reader closes the
        connection.

        Args:
            arguments: the arguments of the call, without the name of the program.
            stdin: the text for the standard input of the call.
        """
        if "--watch" in arguments:
            watch = self._kubectl.follow(arguments)
            try:
                for line in watch.lines():
                    yield {"out": line}
            finally:
                watch.stop()
            done = watch.done()
        else:
            done = self._run(arguments, stdin)
            yield {"out": done.out}
        yield {"code": done.code, "err": done.err}

    def _run(self, arguments: list[str], stdin: str) -> CallResult:
        words, options = split(arguments)
        verb = words[0] if words else ""
        output = options.get("--output", "")
        machine = output not in ("", "name") or "--raw" in options
        try:
            if verb in ("apply", "create") and not machine and "--filename" in options:
                return CallResult(0, self._apply(stdin, options), "")
            if verb == "delete" and len(words) > 1:
                return CallResult(0, self._delete(words, options), "")
            if verb == "get" and not machine:
                return CallResult(0, self._names(words, arguments), "")
        except UnknownKindError:
            return CallResult(1, "", "error: the server doesn't have this resource type\n")
        except (RefusedError, yaml.YAMLError) as error:
            return CallResult(1, "", f"error: {error}\n")
        except ApiError as error:
            return CallResult(1, "", f"Error from server ({error.reason}): {error}\n")
        if verb not in ("get", "patch", "create", "replace", "apply", "config"):
            return CallResult(1, "", f"error: this shell's kubectl does not have `{verb}`\n")
        done = self._kubectl.run(arguments, stdin)
        if output == "yaml" and not done.code:
            return CallResult(0, yaml.safe_dump(json.loads(done.out), sort_keys=False), "")
        return done

    def _apply(self, manifests: str, options: dict[str, str]) -> str:
        lines = []
        with self._kubectl.lock:
            for document in yaml.safe_load_all(manifests):
                if document is None:
                    continue
                if not isinstance(document, dict) or not document.keys() >= _IDENTITY:
                    raise RefusedError("the manifest lacks apiVersion, kind or metadata")
                kind = self._kubectl.world.kinds.of(document)
                if kind.namespaced:
                    space = options.get("--namespace", self._kubectl.namespace)
                    document["metadata"].setdefault("namespace", space)
                self._kubectl.world.apply(document)
                lines.append(f"{_resource(document)} applied\n")
        return "".join(lines)

    def _delete(self, words: list[str], options: dict[str, str]) -> str:
        resource, _, name = words[1].partition("/")
        names = [name] if name else words[2:]
        if not names:
            raise RefusedError("a name is required")
        with self._kubectl.lock:
            world = self._kubectl.world
            kind = world.kinds.find(resource)
            space = options.get("--namespace", self._kubectl.namespace)
            for each in names:
                world.cluster.get(kind, space, each)
                world.delete(kind.name, each, space)
        return "".join(f'{resource} "{each}" deleted\n' for each in names)

    def _names(self, words: list[str], arguments: list[str]) -> str:
        self._kubectl.world.kinds.find(words[1].partition(".")[0] if len(words) > 1 else "")
        found = self._kubectl.run([*arguments, "--output=json"])
        if found.code:
            raise RefusedError(found.err.removeprefix("error: ").strip())
        document = json.loads(found.out)
        items = document.get("items", [document])
        lines = "".join(f"{_resource(each)}\n" for each in items)
        return lines or "No resources found.\n"


def _resource(document: dict[str, Any]) -> str:
    """Returns the name of an object as kubectl prints it, such as `tapp.apps.tkestack.io/web`."""
    group, kind = document["apiVersion"].rpartition("/")[0], document["kind"].lower()
    return f"{f'{kind}.{group}' if group else kind}/{document['metadata']['name']}"


class _Handler(socketserver.StreamRequestHandler):
    server: "_Server"

    def handle(self) -> None:
        request = json.loads(self.rfile.readline())
        # The reader may end a watch at any time.
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in self.server.calls.answer(request["arguments"], request["stdin"]):
                self.wfile.write(json.dumps(part).encode() + b"\n")


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, calls: Calls) -> None:
        super().__init__(path, _Handler)
        self.calls = calls


def programs(directory: Path) -> None:
    """Writes the shell scripts `kubectl` and `kubectl-tapp` into a directory that is on PATH."""
    plugin = "import sys; from kubectl_tapp.entry import main; main()"
    python = shlex.quote(sys.executable)
    for name, code in (
        ("kubectl", f"{python} {shlex.quote(str(ROOT / 'demo' / 'shell_kubectl.py'))}"),
        ("kubectl-tapp", f"PYTHONPATH={shlex.quote(str(ROOT))} {python} -c {shlex.quote(plugin)}"),
    ):
        program = directory / name
        program.write_text(f'#!/bin/sh\nexec env {code} "$@"\n')
        program.chmod(0o755)


def main() -> int:
    """Runs a shell on the embedded cluster until the shell ends, and returns its exit code."""
    with serve() as url, tempfile.TemporaryDirectory() as directory:
        stage = Stage(url)
        # The plugin's processes use the machine's time, so the cluster has to do the same.
        stage.world.clock.now = time.time() - EPOCH.timestamp()
        stage.world.kubelet.levers.bad_images.add(BAD_IMAGE)
        stage.settle()
        kubectl = Kubectl(stage.world)
        place = Path(directory)
        programs(place)
        path = str(place / "socket")
        environment = {
            **os.environ,
            "PATH": f"{place}{os.pathsep}{os.environ['PATH']}",
            SOCKET: path,
            "PS1": "tapp$ ",
            "KUBECTL": "kubectl",
        }
        with _Server(path, Calls(kubectl)) as server, running_in_real_time(kubectl):
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            print(WELCOME, end="", flush=True)
            interactive = ["-i"] if sys.stdin.isatty() else []
            # PS1 of the environment is used if no start file sets it.
            command = ["bash", "--norc", "--noprofile", *interactive]
            code = subprocess.run(command, env=environment, cwd=ROOT, check=False).returncode  # noqa: S603 - the user's shell
            server.shutdown()
            thread.join()
    return code


if __name__ == "__main__":
    sys.exit(main())
