"""`make demo WEB=1`: serves the page of `kubectl tapp web` on the embedded cluster."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from demo.kubectl import Kubectl
from demo.service import serve
from demo.stage import NAME, Document, Stage
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.web.command import serve as serve_page

BAD_IMAGE = "shop:broken"  # An image that no node can pull, to show a rollout that is stuck
_TICK = 0.1


def template(name: str, image: str) -> Document:
    """Returns a pod template with the label `app: NAME` and one container.

    Args:
        name: the value of the label.
        image: the image of the container.
    """
    containers = [{"name": "web", "image": image}]
    spec = {"containers": containers, "terminationGracePeriodSeconds": 2}
    return {"metadata": {"labels": {"app": name}}, "spec": spec}


def tapps() -> Iterator[Document]:
    """Yields the TApps that exist when the page opens: the one of the demo, and two more."""
    pool = {"canary": template(NAME, "shop:2.0")}
    budget = {"maxUnavailable": 1}
    yield _tapp(
        NAME, replicas=6, template=template(NAME, "shop:1.0"), templatePool=pool,
        templates={"5": "canary"}, statuses={"2": "Killed"}, updateStrategy=budget,
    )  # fmt: skip
    yield _tapp("ranks", replicas=48, template=template("ranks", "ranks:7"))
    yield _tapp("rooms", replicas=12, template=template("rooms", "rooms:3"))


def _tapp(name: str, **spec: object) -> Document:
    metadata = {"name": name}
    kind = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp"}
    return {**kind, "metadata": metadata, "spec": spec}


@contextmanager
def running_in_real_time(kubectl: Kubectl) -> Iterator[None]:
    """Lets the time of the simulated cluster pass as real time does, during the `with` block."""
    ended = threading.Event()

    def run() -> None:
        before = time.monotonic()
        while not ended.wait(_TICK):
            now = time.monotonic()
            with kubectl.lock:
                kubectl.world.run(now - before)
            before = now

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def session_of(kubectl: Kubectl) -> Session:
    """Returns a session of the plugin on the embedded cluster, which uses the simulated time."""
    return Session(kubectl, kubectl.world.clock.unix)


def main(port: int = 0, *, browser: bool = True) -> int:
    """Serves the page on the embedded cluster until Ctrl-C, and returns the exit code.

    With `port` 0 the kernel chooses a free port. If `browser` is True, the page is opened in a
    browser.
    """
    with serve() as url:
        stage = Stage(url)
        stage.world.kubelet.levers.bad_images.add(BAD_IMAGE)
        for each in tapps():
            stage.world.apply(each)
        stage.settle()
        kubectl = Kubectl(stage.world)
        print(f"Try a rollout of {BAD_IMAGE}, which gets stuck. Only the service is real here.")
        with running_in_real_time(kubectl):
            serve_page(
                session_of(kubectl), f"/default/{NAME}", port, browser=browser, read_only=False
            )
    return 0
