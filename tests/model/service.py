"""Provides the service that the model calls, and the admission policies of its clusters.

The service runs in this process. `CheckedHook` checks each of its responses.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any

from hooks.app import create_app
from hooks.service.settings import Settings
from simulator.api.admission import Policy, lean_pods
from simulator.metacontroller.hook_client import HookClient, HttpResponse, WsgiHook
from tapp.plan import Plan
from tests import invariants
from tests.invariants import ViolationError
from tests.policies import inject_sidecar, rewrite_images

Document = dict[str, Any]

MIRROR = "mirror.example/"

_now: list[Callable[[], float]] = []


def set_clock(clock: Callable[[], float]) -> None:
    """Makes the service use this clock, which is the clock of the current cluster."""
    _now[:] = [clock]


def now() -> float:
    """Returns the current time of the simulated cluster, in seconds since the epoch."""
    return _now[-1]()


_ask: list[Callable[[Plan], None]] = []


def set_resizer(ask: Callable[[Plan], None]) -> None:
    """Makes the service pass its plans to `ask`, which belongs to the resize component of the
    current cluster.
    """
    _ask[:] = [ask]


def _hand_over(plan: Plan) -> None:
    _ask[-1](plan)


@cache
def service(keep_finished: bool, resize: bool) -> WsgiHook:
    """Returns the service with these settings.

    All lives share the service, because it keeps no state that changes decisions. `keep_finished`
    is its setting `delete_pod_after_app_finish`, and `resize` turns the component resize on.
    """
    settings = Settings(log_level="ERROR", delete_pod_after_app_finish=keep_finished, resize=resize)
    ask = _hand_over if resize else None
    return WsgiHook(create_app(settings, clock=now, resize=ask).wsgi_app)


class CheckedHook:
    """Passes calls on to the service `inner`, and checks all invariants of each response.

    Attributes:
        inner: the service.
        syncs: the number of syncs so far.
    """

    def __init__(self, inner: HookClient) -> None:
        self.inner = inner
        self.syncs = 0
        self.writes_status = True
        """True if the endpoint of the DecoratorController is reachable."""

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        if url.endswith("/pod-status") and not self.writes_status:
            return HttpResponse(503, b'{"error":"away"}')
        answer = self.inner.post(url, body, seconds)
        if url.endswith("/customize"):
            return answer
        if answer.status != 200:
            raise ViolationError(f"P6: {url} is answered with {answer.status}: {answer.body!r}")
        request, plan = json.loads(body), None
        if url.endswith("/pod-status"):
            self._check_status(request["object"].get("status") or {}, json.loads(answer.body))
            return answer
        if url.endswith("/sync"):
            self.syncs += 1
            if self.syncs % 4 == 0:
                plan_url = url.removesuffix("sync") + "plan"
                plan = json.loads(self.inner.post(plan_url, body, seconds).body)
            if self.syncs % 32 == 0:
                invariants.p1_permuted_children_give_the_same_bytes(
                    request, lambda one: self.inner.post(url, json.dumps(one).encode(), 1).body
                )
        try:
            invariants.check(request, json.loads(answer.body), plan, now())
        except ViolationError as violation:
            raise ViolationError(f"{violation}\n{self._account(url, body, seconds)}") from None
        return answer

    def _check_status(self, observed: Document, answer: Document) -> None:
        """Checks that the status for a pod contains all fields and conditions of the observed
        status.
        """
        lost = observed.keys() - answer["status"].keys()
        types = [
            [item["type"] for item in status.get("conditions") or []]
            for status in (observed, answer["status"])
        ]
        if lost or types[1][: len(types[0])] != types[0]:
            raise ViolationError(f"P7: {observed} is to become {answer['status']}")

    def _account(self, url: str, body: bytes, seconds: float) -> str:
        """Returns the decisions of a call with their reasons, and the statuses of the pods, as text
        for a violation.

        `seconds` is the time limit of a further call of the service, which returns the decisions.
        """
        plan = json.loads(self.inner.post(url.removesuffix("sync") + "plan", body, seconds).body)
        lines = [f"{item['id']}: {item['action']} {item['message']}" for item in plan["instances"]]
        pods = json.loads(body)["children"]["Pod.v1"].values()
        return "\n".join([*lines, *(json.dumps(pod["status"]) for pod in pods)])


def mirrored(image: str) -> str:
    return image if image.startswith(MIRROR) else MIRROR + image


ADMISSION: dict[str, tuple[Policy, ...]] = {
    "": (),
    "lean": (lean_pods,),
    "sidecar": (inject_sidecar({"name": "mesh", "image": "mesh:1"}),),
    "mirror": (rewrite_images(mirrored),),
    "lean mirror": (lean_pods, rewrite_images(mirrored)),
}
