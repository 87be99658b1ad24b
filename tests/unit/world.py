"""Runs the service in this process, with a small world around it: one TApp with its pods and
claims.

`World.sync` posts a request to the real application, checks every invariant of the response, and
applies the response as Metacontroller and the API server would. `World.kubelet` then lets pods run,
restart and disappear.
"""

import json
import pickle
from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from flask.testing import FlaskClient

from hooks.app import create_app
from hooks.service.settings import Settings
from simulator.api.admission import Policy
from simulator.metacontroller.hook_client import WsgiHook
from tests import builders
from tests.builders import NOW, Document, as_sent
from tests.hook_calls import desired
from tests.invariants import check, writes
from tests.plan_response import LastPlan

_settings = cache(Settings)
"""Returns the settings for the given values; cached, because no test of a world changes the
environment.
"""
MOST_ROUNDS = 40
"""Number of syncs within which a TApp has to settle."""
POD_STATUS = "apps.tkestack.io/pod-status"


class Hook:
    """Calls the service in this process, with documents as requests and responses.

    Attributes:
        now: the time of the service's clock, in seconds since the epoch.
        settings: the service's settings.
    """

    def __init__(self, now: float = NOW, **settings: Any) -> None:
        self.now = now
        self.settings = _settings(**{"log_level": "ERROR", **settings})
        self._planned = LastPlan()

    @cached_property
    def client(self) -> FlaskClient:
        """The Flask client, created at its first use, because many tests never call the hook."""
        planned = None if self.settings.resize else self._planned
        return create_app(self.settings, clock=lambda: self.now, resize=planned).test_client()

    @cached_property
    def _direct(self) -> WsgiHook:
        """Returns a client that calls the application without the additional work of Flask's test
        client.
        """
        return WsgiHook(self.client.application.wsgi_app)

    def post(self, path: str, document: Any) -> Any:
        """Posts a document, or bytes, to an endpoint and returns Flask's response."""
        return self.client.post(path, data=_body(document), content_type="application/json")

    def answer(self, path: str, document: Any) -> Document:
        """Posts a document, or bytes, to an endpoint and returns the response; fails if the status
        is not 200.
        """
        answer = self._direct.post(f"http://hook{path}", _body(document), 10)
        assert answer.status == 200, answer.body
        result: Document = json.loads(answer.body)
        return result

    def sync(self, request: Document) -> Document:
        """Sends a sync request and returns the response, after checking every invariant."""
        return self._synced(request)[0]

    def _synced(self, request: Document) -> tuple[Document, Document]:
        body = as_sent(request)
        answer = self.answer("/sync", body)
        plan = self._planned.explained() or self.answer("/plan", body)
        check(request, answer, plan)
        return answer, plan

    def finalize(self, request: Document) -> Document:
        """Sends a finalize request and returns the response, after checking every invariant."""
        answer = self.answer("/finalize", request)
        check(request, answer)
        return answer

    def decisions(self, request: Document) -> dict[int, str]:
        """Returns instance number -> `Action/Reason`, the decisions of a sync with this request."""
        _, plan = self._synced(request)
        return {item["id"]: f"{item['action']}/{item['reason']}" for item in plan["instances"]}


def _body(document: Any) -> bytes:
    return document if isinstance(document, bytes) else as_sent(document)


class World:
    """Simulates one TApp with its pods, claims, revisions, Services and PodDisruptionBudget.

    Methods that return the world itself can be chained.

    Attributes:
        hook: the service.
        parent: the TApp.
        pods: the pods by name; `claims`, `revisions`, `services` and `budgets` (the
            PodDisruptionBudgets) are by name, too.
        writes: the writes of the last sync, for example `create Pod/web-0`.
        synced: True after the first sync.
    """

    def __init__(  # noqa: PLR0913 - a facade; all but the first are options
        self,
        parent: Document,
        *,
        hook: Hook | None = None,
        policies: tuple[Policy, ...] = (),
        strip: bool = False,
        history: bool = False,
        classes: list[Document] | None = None,
        exposing: bool = False,
        guarding: bool = False,
    ) -> None:
        """Builds a TApp without pods.

        Args:
            parent: the TApp.
            hook: the service; None for a new one.
            policies: admission policies of the cluster.
            strip: True if an admission policy removes the last-applied annotation from new pods.
            history: True if the CompositeController declares ControllerRevisions, so that there is
                a
                history.
            classes: the cluster's StorageClasses if Metacontroller may let claims grow, otherwise
                None.
            exposing: True if the component services is installed, so that instances may have
                Services.
            guarding: True if the component disruption-budgets is installed.
        """
        self.hook = hook or Hook()
        self.parent = parent
        self.pods: dict[str, Document] = {}
        self.claims: dict[str, Document] = {}
        self.revisions: dict[str, Document] = {}
        self.services: dict[str, Document] = {}
        self.budgets: dict[str, Document] = {}
        self.exposing = exposing
        self.guarding = guarding
        self.history = history
        self.policies = policies
        self.strip = strip
        self.classes = classes
        self.writes: list[str] = []
        self.synced = False

    def request(self, **options: Any) -> Document:
        """Returns the request that Metacontroller would send now; `options` are arguments of
        `builders.request`.
        """
        shown = list(self.revisions.values()) if self.history else None
        services = list(self.services.values()) if self.exposing else None
        budgets = list(self.budgets.values()) if self.guarding else None
        return builders.request(
            self.parent,
            list(self.pods.values()),
            list(self.claims.values()),
            **{
                "revisions": shown,
                "classes": self.classes,
                "services": services,
                "budgets": budgets,
                **options,
            },
        )

    def decisions(self) -> dict[int, str]:
        """Returns instance number -> `Action/Reason`, the decisions that the next sync would
        make.
        """
        return self.hook.decisions(self.request())

    def sync(self) -> Document:
        """Runs a sync, applies its response, and returns the response.

        The attribute `writes` then has the writes of Metacontroller.
        """
        self.synced = True
        request = self.request()
        answer = self.hook.sync(request)
        self.writes = writes(request, answer)
        self.apply(answer)
        generation = self.parent["metadata"]["generation"]
        status = {**answer["status"], "observedGeneration": generation}
        self.parent = {**self.parent, "status": status}
        return answer

    def apply(self, answer: Document) -> None:
        """Creates, updates and deletes the children as Metacontroller and the API server do for a
        response.
        """
        want = desired(answer, "Pod")
        for name, pod in list(self.pods.items()):
            if name not in want:
                self.pods[name] = builders.terminating(pod)
            else:
                self.pods[name] = builders.updated(pod, want[name], self.parent, self.policies)
        for name, child in want.items():
            if name not in self.pods:
                pod = builders.stored(child, self.parent, self.policies)
                self.pods[name] = builders.without_last_applied(pod) if self.strip else pod
        claims = desired(answer, "PersistentVolumeClaim")
        self.claims = {name: item for name, item in self.claims.items() if name in claims}
        for name, child in claims.items():
            if name not in self.claims:
                self.claims[name] = builders.stored(child, self.parent)
            elif self.classes is not None:
                self.claims[name] = builders.updated(self.claims[name], child, self.parent)
        kept = desired(answer, "ControllerRevision")
        self.revisions = {name: item for name, item in self.revisions.items() if name in kept}
        for name, child in kept.items():
            if "data" in child:
                self.revisions.setdefault(name, builders.stored(child, self.parent))

        self.services = self._applied(self.services, desired(answer, "Service"))
        self.budgets = self._applied(self.budgets, desired(answer, "PodDisruptionBudget"))

    def _applied(
        self, before: dict[str, Document], wanted: dict[str, Document]
    ) -> dict[str, Document]:
        """Returns the children of a kind after Metacontroller has applied those in `wanted`."""
        kept = {name: item for name, item in before.items() if name in wanted}
        made = {
            name: builders.updated(kept[name], child, self.parent)
            if name in kept
            else builders.stored(child, self.parent)
            for name, child in wanted.items()
        }
        return kept | made

    def kubelet(self, *, ready: bool = True) -> None:
        """Removes the pods in deletion, and runs the containers of all other pods that have not
        ended.

        `ready` is the readiness of the pods that run.
        """
        self.pods = {
            name: pod
            if pod["status"]["phase"] in ("Succeeded", "Failed")
            else builders.running(pod, ready=ready)
            for name, pod in self.pods.items()
            if "deletionTimestamp" not in pod["metadata"]
        }

    def pod_status(self) -> list[str]:
        """Calls the hook that sets pod statuses for each pod with the label for it.

        Returns the names of the pods whose status has changed.
        """
        written = []
        for name, pod in self.pods.items():
            if pod["metadata"]["labels"].get(POD_STATUS) != "true":
                continue
            asked = {"object": pod, "attachments": {}, "related": {}, "finalizing": False}
            status = self.hook.answer("/pod-status", asked)["status"]
            if status != pod["status"]:
                written.append(name)
                self.pods[name] = {**pod, "status": status}
        return written

    def settle(self) -> "World":
        """Runs syncs and a healthy kubelet until a sync writes nothing (P3); returns the world.

        The result is cached, because hundreds of tests begin in the same way.
        """
        plain = type(self) is World and type(self.hook) is Hook
        if plain and not (self.synced or self.policies):
            key = pickle.dumps(self._own()), self.hook.now, self.hook.settings
            self.__dict__ |= pickle.loads(_settled(*key))
            return self
        return self._settle()

    def _own(self) -> dict[str, Any]:
        """Returns all attributes except the hook, by name."""
        return {name: part for name, part in vars(self).items() if name != "hook"}

    def _settle(self) -> "World":
        for _ in range(MOST_ROUNDS):
            before = self.parent.get("status")
            self.sync()
            if not self.writes and not self.pod_status() and self.parent["status"] == before:
                return self
            self.pod_status()
            self.kubelet()
        raise AssertionError(f"still busy after {MOST_ROUNDS} rounds: {self.writes}")

    def settle_up_to_broken(self) -> "World":
        """Runs three syncs during which no restarted or replaced pod becomes Ready; returns the
        world.

        All containers of such a pod wait in CrashLoopBackOff.
        """
        for _ in range(3):
            self.sync()
            self.pods = {
                name: pod if _serves(pod) else builders.crashing(pod)
                for name, pod in self.pods.items()
                if "deletionTimestamp" not in pod["metadata"]
            }
        return self

    def change(self, **spec: Any) -> "World":
        """Edits the TApp's spec as a user does, and returns the world; a field that is None is
        removed.
        """
        self.parent = with_spec(self.parent, **spec)
        return self

    def modify(self, id: int, change: Callable[[Document], Document]) -> "World":
        """Replaces the pod of an instance by `change(pod)`, and returns the world."""
        name = f"{builders.NAME}-{id}"
        self.pods[name] = change(self.pods[name])
        return self

    def pod(self, id: int) -> Document:
        return self.pods[f"{builders.NAME}-{id}"]

    def container(self, id: int, name: str = "app") -> Document:
        """Returns the container with this name from the spec of an instance's pod."""
        spec = self.pod(id)["spec"]
        both = [*spec["containers"], *spec.get("initContainers", [])]
        return next(item for item in both if item["name"] == name)

    def uids(self) -> dict[str, str]:
        """Returns pod name -> uid. A changed uid means that the pod was replaced."""
        return {name: pod["metadata"]["uid"] for name, pod in self.pods.items()}


def _serves(pod: Document) -> bool:
    running = {item["name"]: item["image"] for item in pod["status"].get("containerStatuses", [])}
    return all(running.get(item["name"]) == item["image"] for item in pod["spec"]["containers"])


def with_spec(parent: Document, **spec: Any) -> Document:
    """Returns the TApp after an edit of its spec, with the next generation; a field that is None is
    removed.
    """
    body = {**parent["spec"], **spec}
    meta = parent["metadata"]
    return {
        **parent,
        "metadata": {**meta, "generation": meta["generation"] + 1},
        "spec": {key: value for key, value in body.items() if value is not None},
    }


def settled(**spec: Any) -> World:
    """Returns a TApp whose pods run and need no further action, with a new service.

    `spec` has fields of the TApp's spec.
    """
    return World(builders.tapp(**spec)).settle()


@cache
def _settled(own: bytes, now: float, settings: Settings) -> bytes:
    """Returns the pickled attributes of a world after it has settled.

    `own` has the pickled attributes of the world at the beginning.
    """
    world = World({})
    world.__dict__ |= pickle.loads(own)
    world.hook = Hook(now)
    world.hook.settings = settings
    return pickle.dumps(world._settle()._own())


def condition(answer: Document, type: str) -> Document | None:
    """Returns the condition of this type in a response or a status, or None if no condition has the
    type.
    """
    status = answer.get("status", answer)
    return next((item for item in status["conditions"] if item["type"] == type), None)
