"""The command `kubectl tapp web`: serves the page on 127.0.0.1 until Ctrl-C."""

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from typing import Annotated, NoReturn

import typer

from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.cluster.access import TAPPS
from kubectl_tapp.cluster.pod import is_pod, pod_namespace
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.complete import names
from kubectl_tapp.commands.options import argument, option, without_resource_prefix

_Name = Annotated[
    str | None,
    argument(
        "[NAME]",
        "Name of the TApp to show first (default: the list of TApps).",
        autocompletion=names,
        callback=without_resource_prefix,
    ),
]
_Port = Annotated[
    int,
    option(
        "--port",
        metavar="PORT",
        min=0,
        max=65535,
        help="Port of the page on 127.0.0.1 (default: a free port).",
    ),
]
_NoBrowser = Annotated[
    bool,
    typer.Option("--no-browser", help="Print the address of the page without opening a browser."),
]
_ReadOnly = Annotated[
    bool, typer.Option("--read-only", help="Show TApps without offering changes.")
]


def web(
    session: Session,
    name: _Name = None,
    port: _Port = 0,
    no_browser: _NoBrowser = False,
    read_only: _ReadOnly = False,
) -> None:
    """Serve a web page that shows, explains and changes TApps.

    Only this machine can open the page. Ctrl-C ends the command.
    """
    if find_spec("flask") is None:
        raise CommandError("the page needs Flask: `pipx install 'tapp[web]'` has it")
    first = "/"
    if name is not None:
        found = session.cluster.get(TAPPS, name)["metadata"]
        first = f"/{found['namespace']}/{found['name']}"
    serve(session, first, port, browser=not no_browser, read_only=read_only)


# Seconds that the command waits at its end for a browser that is being started
_BROWSER_START_SECONDS = 2.0


def serve(session: Session, first: str, port: int, *, browser: bool, read_only: bool) -> None:
    """Serves the page until Ctrl-C or SIGTERM.

    Raises UsageError if the port is in use.

    Args:
        session: the run of the command.
        first: the path that the page shows first: `/`, or `/NAMESPACE/NAME` of a TApp.
        port: the port on 127.0.0.1; 0 lets the kernel choose a free port.
        browser: True to open the page in a browser.
        read_only: True if the page changes nothing.
    """
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415

    from kubectl_tapp.web.app import HOST, AccessGuard, create_app  # noqa: PLC0415 - it costs start time
    from kubectl_tapp.web.opening import opener  # noqa: PLC0415

    class Handler(WSGIRequestHandler):
        """Writes no access log, because the page polls all the time."""

        server_version, sys_version = "kubectl-tapp", ""

        def log_request(self, *_: object) -> None:
            pass

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, port))
        except OSError as error:
            raise UsageError(f"port {port} cannot be used: {error.strerror}") from None
        taken.listen()
        port = taken.getsockname()[1]
        door = AccessGuard(port)
        app = create_app(session, door, first=first, read_only=read_only)
        server = make_server(
            HOST, port, app, threaded=True, request_handler=Handler, fd=taken.fileno()
        )
        _print_now(session, f"The page is at {door.address}")
        _print_now(
            session, "Anyone with this address can do what your kubectl can. Ctrl-C stops it."
        )
        if is_pod():
            _print_now(session, _how_to_reach_the_pod(port))
            browser = False
        before = signal.signal(signal.SIGTERM, _interrupt)
        opening = threading.Thread(daemon=True)
        try:
            if browser:
                say = partial(_try_to_say, session)
                open_page = opener(door.address_for_one_use(), say, door.opened)
                opening = threading.Thread(target=open_page, daemon=True)
            # The browser is started in a thread, because `webbrowser` waits for a browser that runs
            # in the foreground.
            opening.start()
            server.serve_forever()  # returns after Ctrl-C
        finally:
            signal.signal(signal.SIGTERM, before)
            app.extensions["live"].stop()
            server.server_close()
            door.opened.set()  # The thread that starts a browser need not wait any longer.
            _try_to_say(session, "\nEnded.")
            opening.join(_BROWSER_START_SECONDS)


def _print_now(session: Session, text: str) -> None:
    """Prints a line to standard output and flushes it, because the output may be a pipe."""
    session.say(text)
    sys.stdout.flush()


def _try_to_say(session: Session, text: str) -> None:
    """Prints a line, or ignores the error if the terminal or the pipe has been closed."""
    with suppress(OSError):
        _print_now(session, text)


def _how_to_reach_the_pod(port: int) -> str:
    """Returns a sentence with the command that forwards a port of the user's machine to this
    pod.
    """
    # The host name of a pod is its name, unless the pod uses the network or the host name of its
    # node.
    pod = os.environ.get("POD_NAME") or socket.gethostname()
    command = f"kubectl port-forward -n {pod_namespace()} pod/{pod} {port}:{port}"
    return f"This is a pod. Run `{command}` on your machine, and open the address there."


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt
