"""A complete simulated cluster: API server, kubelets, controllers, Metacontroller and a hook.

    world = World(yaml.safe_load(open("composite-controller.yaml")), WsgiHook(app))
    world.apply(manifest)
    world.settle()
    assert [pod["metadata"]["name"] for pod in world.list("Pod")] == ["web-0", "web-1"]

`World` builds the parts, connects them, and offers the actions of a user (`apply`, `patch`,
`delete`) and the passing of time (`run`, `run_until`, `settle`). `World.writes` holds every API
write of Metacontroller and `World.hook_calls` its calls of the hook. DecoratorControllers run in
the same world: `World(..., decorators=[manifest])`.
"""

import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence

import msgspec

from simulator.api.admission import Policy
from simulator.api.apply import canonical_json
from simulator.api.cluster import Cluster
from simulator.api.controllers import ClaimController, GarbageCollector, NamespaceController
from simulator.api.defaults import containers_of
from simulator.api.store import DeleteOptions, Event, Propagation
from simulator.metacontroller.cache import Cache, Environment
from simulator.metacontroller.composite import read
from simulator.metacontroller.decorator import Decorator, read_decorator
from simulator.metacontroller.hook_calls import HookCall
from simulator.metacontroller.hook_client import HookClient
from simulator.metacontroller.metacontroller import Metacontroller
from simulator.node.kubelet import Kubelet
from simulator.node.nodes import ZONE, Nodes
from simulator.objects.clock import Clock
from simulator.objects.kinds import NAMESPACE, Kind, Kinds
from simulator.objects.objects import (
    Object,
    annotations_of,
    finalizers_of,
    is_terminating,
    key_of,
    name_of,
    namespace_of,
    version_of,
    with_meta,
)
from simulator.recording import RecordingStore, Write
from tapp.kube.merges import KUBECTL_APPLIED, kubectl_applied, merge_patch


class UnsettledError(AssertionError):
    """The world did not come to rest, or did not reach the expected state, in the given time."""


class World:
    """One simulated cluster with Metacontroller, and the hook under test."""

    def __init__(  # noqa: PLR0913 - a facade; all but the first two are options
        self,
        composite_controller: Object,
        hook: HookClient,
        *,
        clock: Clock | None = None,
        seed: int = 0,
        version: int = 0,
        nodes: int = 3,
        zones: Sequence[str] = (),
        policies: Iterable[Policy] = (),
        crds: Iterable[Object] = (),
        kinds: Iterable[Kind] = (),
        keep_calls: int = 500,
        decorators: Iterable[Object] = (),
    ) -> None:
        """Builds a cluster without workloads, in which Metacontroller runs the given controllers.

        Args:
            composite_controller: the CompositeController manifest.
            hook: receives all calls of the controllers' hooks.
            clock: the simulated time; None for a new clock.
            seed: determines all random choices.
            version: 0, or the newest resourceVersion of the cluster whose objects this world
                continues (`simulator.seed`). New objects then get higher versions, and other uids,
                container ids and addresses than the existing objects.
            nodes: the number of nodes.
            zones: the zones of the nodes, in turn; empty if the nodes have no zone.
            policies: admission policies, which change or refuse objects that are written.
            crds: CustomResourceDefinitions, which define custom kinds with their defaults.
            kinds: further custom kinds.
            keep_calls: the number of hook calls that `hook_calls` keeps.
            decorators: DecoratorController manifests.
        """
        self.clock = clock or Clock()
        self.kinds = Kinds(kinds)
        seed += version << 32
        for crd in crds:
            self.kinds.add_definition(crd)
        self.cluster = Cluster(self.clock, self.kinds, random.Random(seed), version)  # noqa: S311
        self.cluster.admission.policies.extend(policies)
        self.garbage_collector = GarbageCollector(self.cluster, self.clock)
        self.claim_controller = ClaimController(self.cluster, self.clock)
        self.namespace_controller = NamespaceController(self.cluster, self.clock)
        self.kubelet = Kubelet(self.cluster, self.clock, random.Random(seed + 1))  # noqa: S311
        self.nodes = Nodes(self.cluster, self.clock, self.kubelet)
        self.cache = Cache(self.clock)
        self.cluster.subscribe(self.cache.feed)
        self.cluster.subscribe(self._record_change)
        self.store = RecordingStore(self.cluster, self.clock)
        self.hook = hook
        self.hook_calls: deque[HookCall] = deque(maxlen=keep_calls)
        self._call_listeners: list[Callable[[HookCall], None]] = []
        self._last_change = 0.0
        controller = with_meta(composite_controller, uid="00000000-0000-4000-8000-c0", generation=1)
        environment = Environment(self.store, self.cache, self.kinds, self.clock)
        self.metacontroller = Metacontroller(
            read(controller), environment, self.hook, self._record_call
        )
        self.decorators = [
            Decorator(read_decorator(manifest), environment, self.hook, self._record_call)
            for manifest in (
                with_meta(each, uid=f"00000000-0000-4000-8000-d{number}", generation=1)
                for number, each in enumerate(decorators)
            )
        ]
        self.namespace("default")
        for number in range(nodes):
            labels = {ZONE: zones[number % len(zones)]} if zones else {}
            self.nodes.add(f"node-{number}", labels)

    @property
    def writes(self) -> list[Write]:
        """All writes of Metacontroller so far. A test may empty the list before it counts."""
        return self.store.writes

    @property
    def outcomes(self) -> dict[tuple[str, ...], str]:
        """Key of an object -> error of the object's last sync; an empty string after a success."""
        found: dict[tuple[str, ...], str] = {
            (*key,): text for key, text in self.metacontroller.outcomes.items()
        }
        for each in self.decorators:
            found |= {(each.decorator.name, *key): text for key, text in each.outcomes.items()}
        return found

    def restart(self) -> None:
        """Restarts Metacontroller, so that all its controllers lose their state in memory."""
        self.metacontroller.restart()
        for each in self.decorators:
            each.restart()

    # The actions of a user.

    def namespace(self, name: str) -> Object:
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        return self.cluster.create(NAMESPACE, manifest)

    def apply(self, manifest: Object) -> Object:
        """Creates an object, or changes it as client-side `kubectl apply` does.

        Returns the object as stored. If a manifest of a namespaced kind has no namespace, the
        namespace is `default`.
        """
        manifest = _copy(manifest)
        kind = self.kinds.of(manifest)
        if kind.namespaced and not namespace_of(manifest):
            manifest = with_meta(manifest, namespace="default")
        applied = canonical_json(manifest)
        annotations = {**annotations_of(manifest), KUBECTL_APPLIED: applied}
        desired = with_meta(manifest, annotations=annotations)
        live = self.cluster.find(kind, *key_of(manifest))
        if live is None:
            return self.cluster.create(kind, desired)
        return self.cluster.update(kind, kubectl_applied(live, desired))

    def patch(self, kind: str, name: str, patch: Object, namespace: str = "default") -> Object:
        """Changes an object with a JSON merge patch and returns the object as stored."""
        found = self.kinds.find(kind)
        live = self.get(kind, name, namespace)
        return self.cluster.update(found, merge_patch(live, _copy(patch)))

    def patch_resize(self, namespace: str, name: str, patch: Object) -> Object:
        """Applies a strategic merge patch to the subresource `resize` of a pod.

        Returns the pod as stored. Raises ApiError if the API server refuses the patch. It is also
        raised if the uid or resourceVersion in the patch is not that of the pod.

        Args:
            namespace: the namespace of the pod.
            name: the name of the pod.
            patch: the patch.
        """
        pod = _copy(self.get("Pod", name, namespace))
        pod = with_meta(pod, **patch["metadata"])
        for section, items in patch["spec"].items():
            requested = {item["name"]: item["resources"] for item in items}
            for container in pod["spec"][section]:
                changes = requested.get(container["name"], {})
                container["resources"] = merge_patch(container["resources"], changes)
        return self.cluster.resize(pod)

    def resize(
        self, name: str, resources: Object, container: str = "", namespace: str = "default"
    ) -> Object:
        """Changes the resources of a pod's containers, as a vertical autoscaler does.

        Args:
            name: the name of the pod.
            resources: a JSON merge patch for the field `resources` of each container.
            container: the name of the container to change; empty for all containers.
            namespace: the namespace of the pod.
        """
        pod = _copy(self.get("Pod", name, namespace))
        for _, _, each in containers_of(pod["spec"]):
            if container in ("", each["name"]):
                each["resources"] = merge_patch(each["resources"], _copy(resources))
        return self.cluster.resize(pod)

    def delete(
        self,
        kind: str,
        name: str,
        namespace: str = "default",
        *,
        propagation: Propagation = "Background",
        grace_seconds: int | None = None,
    ) -> None:
        """Deletes an object as `kubectl delete --wait=false` does.

        `propagation` says what happens to the objects that the object owns. `grace_seconds` is the
        grace period of a pod; None means the grace period in the pod's spec.
        """
        self.cluster.delete(
            self.kinds.find(kind),
            namespace,
            name,
            DeleteOptions(propagation=propagation, grace_seconds=grace_seconds),
        )

    def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        """Returns an object, or raises NotFoundError if the object does not exist."""
        return self.cluster.get(self.kinds.find(kind), namespace, name)

    def list(self, kind: str, namespace: str | None = None) -> list[Object]:
        """Returns all objects of a kind, sorted by namespace and name.

        If `namespace` is None, the objects of all namespaces are returned.
        """
        return self.cluster.list(self.kinds.find(kind), namespace)

    def watch(self, listener: Callable[[Event], None]) -> None:
        """Registers a function that is called with every later change of any object."""
        self.cluster.subscribe(listener)

    def on_call(self, listener: Callable[[HookCall], None]) -> None:
        """Registers a function that is called before every later call of a hook."""
        self._call_listeners.append(listener)

    def _record_call(self, call: HookCall) -> None:
        self.hook_calls.append(call)
        for listener in self._call_listeners:
            listener(call)

    # The passing of time.

    def run(self, seconds: float) -> None:
        """Lets simulated seconds pass, and runs all timers that are due in this time."""
        end = self.clock.now + seconds
        while self.clock.step(end):
            pass
        self.clock.now = end

    def run_until(self, predicate: Callable[[], bool], max_seconds: float = 600.0) -> None:
        """Lets simulated time pass until `predicate` returns True.

        Raises UnsettledError if that does not happen within `max_seconds`, or if no timer is left.
        """
        end = self.clock.now + max_seconds
        while not predicate():
            if not self.clock.step(end):
                raise UnsettledError(f"not reached within {max_seconds:g} s\n{self.dump()}")

    def settle(
        self, *, quiet: float = 120.0, max_seconds: float = 7200.0, allow_errors: bool = False
    ) -> None:
        """Lets simulated time pass until nothing more is going to change.

        The world is at rest if only background timers are left, such as resyncs, or if no object
        has changed for `quiet` seconds. Raises UnsettledError if the world still changes after
        `max_seconds`. It is also raised if a sync has failed and `allow_errors` is False.
        """
        end = self.clock.now + max_seconds
        self._last_change = self.clock.now
        while self.clock.has_foreground_timers and self.clock.now - self._last_change < quiet:
            if not self.clock.step(end):
                raise UnsettledError(f"still changing after {max_seconds:g} s\n{self.dump()}")
        failed = {key: text for key, text in self.outcomes.items() if text}
        if failed and not allow_errors:
            raise UnsettledError(f"syncs fail: {failed}\n{self.dump()}")

    def _record_change(self, _event: Event) -> None:
        self._last_change = self.clock.now

    def dump(self) -> str:
        """Returns a text about a failed test: all objects, the results of syncs and the last
        writes.
        """
        lines = [f"time {self.clock.now:.2f} s"]
        for kind, obj in self.cluster.contents():
            phase = (obj.get("status") or {}).get("phase", "")
            details = [phase, "terminating" if is_terminating(obj) else "", *finalizers_of(obj)]
            name = f"{kind.name} {namespace_of(obj)}/{name_of(obj)}"
            lines.append(f"  {name} rv={version_of(obj)} {' '.join(filter(None, details))}")
        lines += [f"  outcome {key}: {text}" for key, text in self.outcomes.items()]
        lines += [f"  {write.time:8.2f} {write}" for write in self.writes[-20:]]
        return "\n".join(lines)


def _copy(value: Object) -> Object:
    copied: Object = msgspec.json.decode(msgspec.json.encode(value))
    return copied
