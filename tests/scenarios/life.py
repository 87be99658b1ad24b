"""Plays the life of a TApp in the simulator, and checks the invariants of the service on the way.

`Life` has a method for each action of a user, and properties for what a user can see. The hook is
the real application, called in this process at simulated time. Facts about the cluster (what runs,
what was written) come from the cluster, not from the hook.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec
import yaml

from hooks.app import create_app
from hooks.service.settings import Settings
from simulator.api.admission import Policy
from simulator.api.store import ApiError, Event, NotFoundError, Propagation
from simulator.metacontroller.faulty_hook import FaultyHook
from simulator.metacontroller.hook_client import HookClient, HttpResponse, WsgiHook
from simulator.objects.clock import EPOCH
from simulator.recording import Write
from simulator.world import World
from tapp.answer.resize_patches import Patch, patches
from tapp.plan import Plan
from tests.invariants import check
from tests.plan_response import LastPlan
from tests.prepull import is_puller
from tests.sizes import size

Document = dict[str, Any]

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DECORATOR = "metacontroller/components/pod-status/decorator-controller.yaml"
CHECK_EVERY = 1
"""The invariants are checked for each n-th sync, where n is this number, unless a test chooses
another.
"""


@cache
def manifest(path: str) -> Document:
    """Returns the single document of a YAML file; `path` is relative to the repository."""
    document: Document = yaml.load((ROOT / path).read_text(), yaml.CSafeLoader)
    return document


def registration(*, exposing: bool = False) -> Document:
    """Returns the shipped CompositeController; with `exposing`, including the components
    services and disruption-budgets.
    """
    found = manifest("metacontroller/base/composite-controller.yaml")
    if not exposing:
        return found
    children = [*found["spec"]["childResources"]]
    for component in ("services", "disruption-budgets"):
        patch: Any = manifest(f"metacontroller/components/{component}/composite-controller.yaml")
        children += [item["value"] for item in patch]
    return {**found, "spec": {**found["spec"], "childResources": children}}


def example(path: str) -> list[Document]:
    """Returns the documents of an example; `path` is relative to examples/ and has no suffix:
    `kill/1-create`.
    """
    text = (EXAMPLES / f"{path}.yaml").read_text()
    return list(yaml.load_all(text, yaml.CSafeLoader))


class CheckedHook:
    """Passes calls on to the service, and checks all invariants of each n-th sync with its plan.

    A request with the same response as the one before is not checked again. `syncs` is the number
    of syncs and finalize calls so far.
    """

    def __init__(self, inner: HookClient, every: int, planned: LastPlan) -> None:
        """Wraps the service `inner`; each `every`-th sync is checked.

        `every` is 1 unless there are too many children to check each sync. `planned` has the plan
        of the last sync.
        """
        self._inner = inner
        self._every = every
        self._planned = planned
        self._checked = (b"", b"")
        self.syncs = 0

    def post(self, url: str, body: bytes, seconds: float) -> HttpResponse:
        """Calls the service and returns its response; raises ViolationError if an invariant is
        violated.
        """
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
    """Simulates a cluster with one TApp, from its first manifest to its end.

    Methods that return the life itself can be chained: `Life().apply(tapp()).patch(replicas=5)`.
    """

    def __init__(  # noqa: PLR0913 - a facade; all are options
        self,
        *,
        policies: Iterable[Policy] = (),
        check_every: int | None = None,
        seed: int = 0,
        nodes: int = 3,
        zones: Sequence[str] = (),
        decorated: bool = True,
        exposing: bool = False,
        **settings: Any,
    ) -> None:
        """Builds a cluster with Metacontroller and the service.

        Args:
            policies: admission policies of the cluster.
            check_every: each n-th sync is checked; None for `CHECK_EVERY`.
            seed: determines all random choices of the cluster.
            nodes: the number of nodes.
            zones: the zones of the nodes, in turn; empty if the nodes have no zone.
            decorated: True if the shipped DecoratorController is installed, which writes pod
                statuses.
            exposing: True if the components services and disruption-budgets are installed.
            settings: settings of the service.
        """
        planned = LastPlan(self._resize if settings.get("resize") else None)
        application = create_app(
            Settings(**{"log_level": "ERROR", **settings}),
            clock=lambda: EPOCH.timestamp() + self.world.clock.now,
            resize=planned,
        )
        self.patches: list[tuple[str, str]] = []
        """For each resize that the service has sent: the pod's name, and the error of the API
        server or "".
        """
        self.lost_patches = 0
        """The number of the next resizes that are lost on their way to the API server."""
        hook = CheckedHook(WsgiHook(application.wsgi_app), check_every or CHECK_EVERY, planned)
        self.world = World(
            registration(exposing=exposing),
            FaultyHook(hook),
            seed=seed,
            nodes=nodes,
            zones=zones,
            policies=policies,
            crds=[manifest("crds/tapp.yaml")],
            decorators=[manifest(DECORATOR)] if decorated else (),
        )
        self.name = ""
        self.fewest_ready = 0
        """The fewest instances that could really serve at the same time since `watch_readiness` was
        called.
        """
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
        """Runs `kubectl apply` for the documents, and waits until nothing changes any more."""
        return self.begin(*documents).settle()

    def begin(self, *documents: Document) -> "Life":
        """Runs `kubectl apply` for the documents without waiting."""
        for document in documents:
            self.world.apply(document)
            if document["kind"] == "TApp":
                self.name = document["metadata"]["name"]
        return self

    def patch(self, **spec: Any) -> "Life":
        """Merges these fields into the spec like `kubectl patch --type=merge`, and waits until
        nothing changes.

        A field that is None is removed.
        """
        self.begin_patch(**spec)
        return self.settle()

    def begin_patch(self, **spec: Any) -> "Life":
        """Merges these fields into the spec like `kubectl patch --type=merge`, without waiting."""
        self.world.patch("TApp", self.name, {"spec": spec})
        return self

    def delete(self, propagation: Propagation = "Background") -> "Life":
        """Deletes the TApp with this propagation policy, and waits until nothing changes any
        more.
        """
        self.world.delete("TApp", self.name, propagation=propagation)
        return self.settle()

    def settle(self, *, allow_errors: bool = False) -> "Life":
        """Waits until nothing changes any more; fails if a sync fails at the end, unless
        `allow_errors` is True.
        """
        self.world.settle(allow_errors=allow_errors)
        return self

    def until(self, fact: Callable[[], bool]) -> "Life":
        """Waits until the function `fact` returns True."""
        self.world.run_until(fact)
        return self

    def idle(self, hours: float = size(1, 2)) -> "Life":
        """Lets hours of simulated time pass, in which Metacontroller calls the hook every five
        minutes.
        """
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
        """The statuses of all instances in one line, by instance number: `Running Killed
        Running`.
        """
        return " ".join(
            self.status["statuses"][key] for key in sorted(self.status["statuses"], key=int)
        )

    def condition(self, type: str) -> str:
        """Returns `STATUS REASON: MESSAGE` of the TApp's condition, or "" if the
        TApp has no condition of this type.
        """
        return condition(self.tapp, type)

    @property
    def complete(self) -> bool:
        """True if the status says that all instances are as the spec asks."""
        return is_complete(self.tapp)

    @property
    def pods(self) -> dict[int, Document]:
        """Instance number -> pod, for all pods of instances."""
        return {
            int(pod["metadata"]["name"].removeprefix(f"{self.name}-")): pod
            for pod in self.world.list("Pod")
            if not is_puller(pod)
        }

    def images(self, container: int = 0) -> str:
        """Returns the images of the pods in one line, by instance number.

        `container` is the index of the container in its pod.
        """
        return " ".join(
            pod["spec"]["containers"][container]["image"] for _, pod in sorted(self.pods.items())
        )

    def uids(self) -> dict[int, str]:
        """Returns instance number -> uid of its pod."""
        return {number: pod["metadata"]["uid"] for number, pod in self.pods.items()}

    def restarts(self) -> dict[int, int]:
        """Returns instance number -> number of restarts of all containers in its pod."""
        return {
            number: sum(item["restartCount"] for item in pod["status"]["containerStatuses"])
            for number, pod in self.pods.items()
        }

    def claims(self) -> dict[str, str]:
        """Returns name -> uid for all claims."""
        claims = self.world.list("PersistentVolumeClaim")
        return {claim["metadata"]["name"]: claim["metadata"]["uid"] for claim in claims}

    def history(self) -> list[str]:
        """Returns a line for each ControllerRevision, by number: number, template and image, such
        as `2 canary web:2`.
        """
        found = sorted(self.world.list("ControllerRevision"), key=lambda item: item["revision"])
        return [
            f"{item['revision']} {item['metadata']['annotations']['apps.tkestack.io/template']} "
            f"{item['data']['template']['spec']['containers'][0]['image']}"
            for item in found
        ]

    # The events since the last call.

    def news(self) -> list[Write]:
        """Returns Metacontroller's writes since the last call of this method."""
        found = self.world.writes[self._seen :]
        self._seen = len(self.world.writes)
        return found

    def writes(self) -> list[str]:
        """Returns the writes to pods, claims and Services since the last call, such as `update Pod
        web-0`.

        Checks in addition that no write was refused and that each has changed something. The second
        PUT of a DecoratorController is an exception: it may change nothing, and is left out.
        """
        found = self.news()
        pairs = zip([None, *found], found, strict=False)
        news = [write for before, write in pairs if not _follows(before, write)]
        assert [str(write) for write in news if write.outcome != "ok"] == []
        return [brief(write) for write in news if write.kind not in ("TApp", "ControllerRevision")]

    def watch_readiness(self) -> None:
        """Sets `fewest_ready` to the number of instances that can serve now; from now on it is kept
        up to date.
        """
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
    """Returns `STATUS REASON: MESSAGE` of a TApp's condition, or "" if the
    TApp has no condition of this type.
    """
    for found in (tapp.get("status") or {}).get("conditions") or []:
        if found["type"] == type:
            return f"{found['status']} {found['reason']}: {found['message']}"
    return ""


def is_complete(tapp: Document) -> bool:
    """Returns True if the status of the TApp says that all instances are as the newest spec
    asks.
    """
    return (
        (tapp.get("status") or {}).get("observedGeneration") == tapp["metadata"]["generation"]
        and condition(tapp, "Ready").startswith("True ")
        and condition(tapp, "Progressing").startswith("False Complete")
    )


def _follows(before: Write | None, write: Write) -> bool:
    """Returns True if `write` is a PUT without effect that follows the write of the same pod's
    status.

    `before` is the write before `write`; None if `write` is the first one.
    """
    status = before is not None and (before.verb, before.name) == ("status", write.name)
    return status and (write.verb, write.kind, write.outcome) == ("update", "Pod", "no-op")


def brief(write: Write) -> str:
    """Returns a write in three words, such as `update Pod web-0`."""
    kind = {"PersistentVolumeClaim": "Claim"}.get(write.kind, write.kind)
    return f"{write.verb} {kind} {write.name}"


def each(verb: str, *names: str) -> list[str]:
    """Returns a text for each name: `each("create Pod", "web-0", "web-1")` is two writes."""
    return [f"{verb} {name}" for name in names]
