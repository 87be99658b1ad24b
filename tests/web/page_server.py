"""Serves the web page for the simulated cluster, and changes the cluster as other users do.

`cluster` builds the cluster, and `on_port` serves the page.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from werkzeug.serving import WSGIRequestHandler, make_server

from demo.web import running_in_real_time, session_of, template
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.web.app import AccessGuard, create_app
from tests.builders import manifest
from tests.plugin.fake_kubectl import StandIn
from tests.scenarios.life import Life

if TYPE_CHECKING:
    from playwright.sync_api import Page

Document = dict[str, Any]


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None: ...


@dataclass
class Served:
    """A web page that is being served.

    Attributes:
        standin: the fake kubectl of the page's user.
        door: the access control of the page.
        port: the port of the server.
    """

    standin: StandIn
    door: AccessGuard
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spec(self, name: str = "shop") -> Document:
        """Returns the current spec of a TApp."""
        with self.standin.lock:
            return dict(self.standin.world.get("TApp", name)["spec"])

    def pod(self, id: int, name: str = "shop") -> Document:
        """Returns the current pod of an instance, or an empty mapping if the instance has no
        pod.
        """
        with self.standin.lock:
            pods = {each["metadata"]["name"]: each for each in self.standin.world.list("Pod")}
            return dict(pods.get(f"{name}-{id}", {}))

    def patch(self, spec: Document, name: str = "shop") -> None:
        """Changes the spec of a TApp as another user does."""
        with self.standin.lock:
            self.standin.world.patch("TApp", name, {"spec": spec})


def tapp(name: str = "shop", namespace: str = "default", **spec: Any) -> Document:
    """Returns the manifest of a TApp with six instances whose pods start without delay.

    `spec` has further fields of its spec.
    """
    known = {"replicas": 6, "template": template(name, f"{name}:1.0")}
    return manifest(name, namespace=namespace, **{**known, **spec})


def cluster(*tapps: Document, bad: str = "shop:broken") -> StandIn:
    """Returns a fake kubectl for a cluster with these TApps, after they have settled; the image
    `bad` cannot be pulled.
    """
    life = Life(check_every=100)
    life.world.kubelet.levers.bad_images.add(bad)
    return StandIn(life.apply(*tapps).world)


def until(page: "Page", fact: Callable[[], bool]) -> None:
    """Waits until the function `fact` returns True; the browser keeps handling its events. Fails
    after two minutes.
    """
    for _ in range(1200):
        if fact():
            return
        page.wait_for_timeout(100)
    raise AssertionError("it does not come about")


@contextmanager
def on_port(
    standin: StandIn, port: int = 0, door: AccessGuard | None = None, **more: Any
) -> Iterator[Served]:
    """Serves the page of a simulated cluster whose clock follows the real time, and yields the
    server.

    `port` 0 stands for any free port. `door` is the access control of an earlier start, with its
    secrets; None for a new one. `more` are options of the server.
    """
    with (
        running_in_real_time(standin),
        serving(session_of(standin), port, door, **more) as (opened, found),
    ):
        yield Served(standin, opened, found)


@contextmanager
def serving(
    session: Session, port: int, door: AccessGuard | None = None, **more: Any
) -> Iterator[tuple[AccessGuard, int]]:
    """Serves the page for a session within the block; yields the access control and the port.

    `port` 0 stands for any free port. `door` is the access control to use; None for a new one.
    `more` are options of the server.
    """
    server = make_server("127.0.0.1", port, _late, threaded=True, request_handler=_Quiet)
    door = door or AccessGuard(server.server_port)
    server.app = app = create_app(session, door, **more)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield door, server.server_port
    finally:
        app.extensions["live"].stop()
        server.shutdown()
        thread.join()
        server.server_close()


def _late(*_: object) -> list[bytes]:
    """Takes the place of the application until it exists; no request arrives before that."""
    return []
