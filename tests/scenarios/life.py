"""The life of a TApp in the simulator, in a user's words; invariants are checked on the way.

`Life` has the actions of a user and the questions of a user. The hook is the real application,
called in process at simulated time. Facts about the cluster (what runs, what was written) come from
the cluster, not from the hook.
"""

from collections.abc import Callable, Iterable
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import yaml

from hooks.app import create_app
from hooks.service.settings import Settings
from simulator.api.admission import Policy
from simulator.api.store import ApiError, Event, NotFoundError, Propagation
from simulator.metacontroller.hook_client import HookClient, HttpResponse, WsgiHook
from simulator.objects.clock import EPOCH
from simulator.recording import Write
from simulator.world import World
from tapp.answer.resize_patches import Patch, patches
from tapp.plan import Plan
from tests.faulty_hook import FaultyHook
from tests.invariants import check
from tests.planned import LastPlan
from tests.pulled import is_puller
from tests.sizes import size

Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DECORATOR = "metacontroller/components/pod-status/decorator-controller.yaml"
CHECK_EVERY = 1
"""The invariants are checked for every n-th sync, unless a test gives another number."""


@cache
def manifest(path: str) -> Document:
    """Returns a YAML document of the repository."""
    document: Document = yaml.load((ROOT / path).read_text(), yaml.CSafeLoader)
    return document


def registration(*, exposing: bool = False) -> Document:
    """Returns the shipped CompositeController, with or without the component services."""
    found = manifest("metacontroller/base/composite-controller.yaml")
    if not exposing:
        return found
    patch: Any = manifest("metacontroller/components/services/composite-controller.yaml")
    children = [*found["spec"]["childResources"], *(item["value"] for item in patch)]
    return {**found, "spec": {**found["spec"], "childResources": children}}


def example(path: str) -> list[Document]:
    """Returns the documents of an example file such as `kill/1-create`."""
    text = (EXAMPLES / f"{path}.yaml").read_text()
    return list(yaml.load_all(text, yaml.CSafeLoader))


class CheckedHook:
    """Passes calls on, and checks every invariant for every n-th sync and its plan.

    The same request with the same response is checked only once.
    """

    def __init__(self, inner: HookClient, every: int, planned: LastPlan) -> None:
        """`every` is 1 unless there are too many children to check each sync."""
        self._inner = inner
        self._every = every
        self._planned = planned
        self._checked = (b"", b"")
        self.syncs = 0

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        """Calls the hook; a violated invariant raises an AssertionError."""
        answer = self._inner.post(url, body, seconds)
        hook = url.rpartition("/")[2]
        if hook in ("sync", "finalize") and answer.status == 200:
            self.syncs += 1
            if self.syncs % self._every == 0 and (body, answer.body) != self._checked:
                self._check(hook, url, body, answer)
                self._checked = body, answer.body
        return answer

    def _check(self, hook: str, url: str, body: bytes, answer: HttpResponse) -> None:
        plan = None
        if hook == "sync":
            plan_url = url.removesuffix("sync") + "plan"
            plan = self._planned.explained()
            plan = plan or msgspec.json.decode(self._inner.post(plan_url, body, 10).body)
        check(msgspec.json.decode(body), msgspec.json.decode(answer.body), plan)


class Life:
    """One TApp from its first manifest to its end."""

    def __init__(  # noqa: PLR0913 - a facade; all are options
        self,
        *,
        policies: Iterable[Policy] = (),
        check_every: int | None = None,
        seed: int = 0,
        nodes: int = 3,
        decorated: bool = True,
        exposing: bool = False,
        **settings: Any,
    ) -> None:
        """Builds a cluster with Metacontroller and the service.

        Args:
            policies: admission policies of the cluster.
            check_every: every n-th sync is checked; None: `CHECK_EVERY`.
            seed: determines all random choices of the cluster.
            nodes: number of nodes.
            decorated: True if the shipped DecoratorController is installed.
            exposing: True if the component services is installed.
            settings: settings of the service.
        """
        planned = LastPlan(self._resize if settings.get("resize") else None)
        application = create_app(
            Settings(**{"log_level": "ERROR", **settings}),
            clock=lambda: EPOCH.timestamp() + self.world.clock.now,
            resize=planned,
        )
        self.patches: list[tuple[str, str]] = []
        """Pods that the service has resized, each with the API server's error, or an empty string.
        """
        self.lost_patches = 0
        """The number of next resizes that are lost on the way."""
        hook = CheckedHook(WsgiHook(application.wsgi_app), check_every or CHECK_EVERY, planned)
        self.world = World(
            registration(exposing=exposing),
            FaultyHook(hook),
            seed=seed,
            nodes=nodes,
            policies=policies,
            crds=[manifest("crds/tapp.yaml")],
            decorators=[manifest(DECORATOR)] if decorated else (),
        )
        self.name = ""
        self.fewest_ready = 0
        """The fewest instances that could really serve at the same time since `watch_readiness`."""
        self._serving: set[str] = set()
        self._seen = 0
        self.world.watch(self._note)

    def _resize(self, plan: Plan) -> None:
        """Sends the resizes of a plan a moment after the response, as the service does."""
        for patch in patches(plan):
            self.world.clock.after(0.05, partial(self._patch, patch))

    def _patch(self, patch: Patch) -> None:
        if self.lost_patches:
            self.lost_patches -= 1
            self.patches.append((patch.name, "lost"))
            return
        try:
            self.world.patch_resize(*patch)
        except ApiError as error:
            self.patches.append((patch.name, str(error)))
        else:
            self.patches.append((patch.name, ""))

    # The actions of a user.

    def apply(self, *documents: Document) -> "Life":
        """Runs `kubectl apply`, and waits until nothing changes any more."""
        return self.begin(*documents).settle()

    def begin(self, *documents: Document) -> "Life":
        """Runs `kubectl apply` without waiting."""
        for document in documents:
            self.world.apply(document)
            if document["kind"] == "TApp":
                self.name = document["metadata"]["name"]
        return self

    def patch(self, **spec: Any) -> "Life":
        """Runs `kubectl patch --type=merge` for the spec, and waits until nothing changes."""
        self.begin_patch(**spec)
        return self.settle()

    def begin_patch(self, **spec: Any) -> "Life":
        """Runs `kubectl patch --type=merge` for the spec without waiting."""
        self.world.patch("TApp", self.name, {"spec": spec})
        return self

    def delete(self, propagation: Propagation = "Background") -> "Life":
        """Runs `kubectl delete --cascade=...`, and waits until nothing changes any more."""
        self.world.delete("TApp", self.name, propagation=propagation)
        return self.settle()

    def settle(self, *, allow_errors: bool = False) -> "Life":
        """Waits until nothing changes any more."""
        self.world.settle(allow_errors=allow_errors)
        return self

    def until(self, fact: Callable[[], bool]) -> "Life":
        """Waits until `fact` is true."""
        self.world.run_until(fact)
        return self

    def idle(self, hours: float = size(1, 2)) -> "Life":
        """Lets time pass; Metacontroller calls the hook every five minutes."""
        self.world.run(hours * 3600)
        return self

    # The questions of a user.

    @property
    def tapp(self) -> Document:
        return self.world.get("TApp", self.name)

    @property
    def exists(self) -> bool:
        """True if the TApp exists."""
        try:
            return bool(self.tapp)
        except NotFoundError:
            return False

    @property
    def status(self) -> Document:
        status: Document = self.tapp.get("status") or {}
        return status

    @property
    def statuses(self) -> str:
        """All instance statuses in one line, by instance number."""
        return " ".join(
            self.status["statuses"][key] for key in sorted(self.status["statuses"], key=int)
        )

    def condition(self, type: str) -> str:
        """Returns `status reason: message` of a condition, or an empty string."""
        return condition(self.tapp, type)

    @property
    def complete(self) -> bool:
        """True if the status says that all instances are as the spec asks."""
        return is_complete(self.tapp)

    @property
    def pods(self) -> dict[int, Document]:
        """Pods by instance number."""
        return {
            int(pod["metadata"]["name"].removeprefix(f"{self.name}-")): pod
            for pod in self.world.list("Pod")
            if not is_puller(pod)
        }

    def images(self, container: int = 0) -> str:
        """Returns the image of each pod's n-th container in one line, by instance number."""
        return " ".join(
            pod["spec"]["containers"][container]["image"] for _, pod in sorted(self.pods.items())
        )

    def uids(self) -> dict[int, str]:
        """Returns the pods' uids by instance number."""
        return {number: pod["metadata"]["uid"] for number, pod in self.pods.items()}

    def restarts(self) -> dict[int, int]:
        """Returns the number of restarts of the pods' containers, by instance number."""
        return {
            number: sum(item["restartCount"] for item in pod["status"]["containerStatuses"])
            for number, pod in self.pods.items()
        }

    def claims(self) -> dict[str, str]:
        """Returns the claims' uids by name."""
        claims = self.world.list("PersistentVolumeClaim")
        return {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in claims}

    def history(self) -> list[str]:
        """Returns the ControllerRevisions by number, such as `2 canary web:2`."""
        found = sorted(self.world.list("ControllerRevision"), key=lambda item: item["revision"])
        return [
            f"{item['revision']} {item['metadata']['annotations']['apps.tkestack.io/template']} "
            f"{item['data']['template']['spec']['containers'][0]['image']}"
            for item in found
        ]

    # The events since the last call.

    def news(self) -> list[Write]:
        """Returns Metacontroller's writes since the last call."""
        found = self.world.writes[self._seen :]
        self._seen = len(self.world.writes)
        return found

    def writes(self) -> list[str]:
        """Returns the writes to pods and claims since the last call.

        Checks that no write was refused or changed nothing, except for the second PUT of a
        DecoratorController.
        """
        found = self.news()
        pairs = zip([None, *found], found, strict=False)
        news = [write for before, write in pairs if not _follows(before, write)]
        assert [str(write) for write in news if write.outcome != "ok"] == []
        return [brief(write) for write in news if write.kind not in ("TApp", "ControllerRevision")]

    def watch_readiness(self) -> None:
        """Starts to record the fewest instances that can serve at the same time."""
        self.fewest_ready = len(self._serving)

    def _note(self, event: Event) -> None:
        if event.kind.name != "Pod":
            return
        worker, name = self.world.kubelet.worker(event.object), event.object["metadata"]["name"]
        if event.new is not None and worker and worker.local.can_serve(self.world.clock.now):
            self._serving.add(name)
        else:
            self._serving.discard(name)
        self.fewest_ready = min(self.fewest_ready, len(self._serving))


def condition(tapp: Document, type: str) -> str:
    """Returns `status reason: message` of a TApp's condition, or an empty string."""
    for found in (tapp.get("status") or {}).get("conditions") or []:
        if found["type"] == type:
            return f"{found['status']} {found['reason']}: {found['message']}"
    return ""


def is_complete(tapp: Document) -> bool:
    """Returns True if the status says that all instances are as the spec asks."""
    return (
        (tapp.get("status") or {}).get("observedGeneration") == tapp["metadata"]["generation"]
        and condition(tapp, "Ready").startswith("True ")
        and condition(tapp, "Progressing").startswith("False Complete")
    )


def _follows(before: Write | None, write: Write) -> bool:
    """Returns True if a write changes nothing and follows a write of the same pod's status."""
    status = before is not None and (before.verb, before.name) == ("status", write.name)
    return status and (write.verb, write.kind, write.outcome) == ("update", "Pod", "no-op")


def brief(write: Write) -> str:
    """Returns a write in three words, such as `update Pod web-0`."""
    kind = {"PersistentVolumeClaim": "Claim"}.get(write.kind, write.kind)
    return f"{write.verb} {kind} {write.name}"


def each(verb: str, *names: str) -> list[str]:
    """Returns the same write for several children: `each("create Pod", "web-0", "web-1")`."""
    return [f"{verb} {name}" for name in names]
