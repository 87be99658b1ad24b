"""The faults of a simulated cluster: what nodes, registries, networks and controllers do wrong.

`Faults` has a method for each fault, and `heal` ends them all. The methods name pods and nodes, so
that any caller decides what is hit: the model tests draw their faults with hypothesis, and
`simulator.schedule` draws them from a seed.
"""

from collections.abc import Callable, Iterable

from simulator.api.eviction import evict
from simulator.api.store import ApiError, NotFoundError
from simulator.metacontroller.faulty_hook import FaultyHook
from simulator.objects.objects import Object, is_terminating, name_of
from simulator.world import World
from tapp.kube.restarts import COMPLETED


class Faults:
    """Carries out faults in one simulated cluster.

    Attributes:
        lost: the names of the nodes that have stopped reporting.
    """

    def __init__(self, world: World, hook: FaultyHook, namespace: str = "default") -> None:
        """Prepares the faults of a cluster.

        Args:
            world: the cluster.
            hook: the hook client that the controllers of the cluster use.
            namespace: the namespace of the pods.
        """
        self.lost: set[str] = set()
        self._world = world
        self._hook = hook
        self._namespace = namespace

    # Nodes and kubelets.

    def lose_nodes(self, *names: str) -> None:
        """Lets nodes stop reporting; their containers go on running. Unknown names are ignored."""
        known = {name_of(node) for node in self._world.list("Node")}
        for name in names:
            if name in known - self.lost:
                self.lost.add(name)
                self._world.nodes.lose(name)

    def recover_nodes(self, *names: str) -> None:
        """Lets lost nodes report again; without names, all of them."""
        for name in sorted(self.lost.intersection(names) if names else self.lost):
            self.lost.discard(name)
            self._world.nodes.recover(name)

    def restart_kubelet(self, node: str) -> None:
        """Restarts the kubelet of a node, unless the node is lost."""
        if node not in self.lost:
            self._world.kubelet.restart(node)

    # Pods.

    def running(self, name: str) -> Object | None:
        """Returns a pod that a kubelet can still act on; None if there is no such pod.

        The pod is on a node that reports, and is not being deleted.
        """
        try:
            pod = self._world.get("Pod", name, self._namespace)
        except NotFoundError:
            return None
        node = pod["spec"].get("nodeName")
        return pod if node and node not in self.lost and not is_terminating(pod) else None

    def exit(self, name: str, code: int = 1, container: str | None = None) -> bool:
        """Lets running containers of a pod exit with `code`; None as `container` means all of them.

        Returns False if there is no such pod.
        """
        pod = self.running(name)
        if pod is not None:
            self._world.kubelet.finish(pod, code, container)
        return pod is not None

    def evict_under_pressure(self, name: str) -> bool:
        """Lets the kubelet evict a pod, because its node is low on memory.

        Returns False if there is no such pod, or if the pod has ended.
        """
        pod = self.running(name)
        if pod is None or (pod.get("status") or {}).get("phase") in COMPLETED:
            return False
        self._world.kubelet.evict(pod)
        return True

    def evict(self, name: str) -> str:
        """Evicts a pod through the API, as `kubectl drain` does.

        Returns "" after the eviction, or why the API server refuses it.
        """
        try:
            pod = self._world.get("Pod", name, self._namespace)
            evict(self._world.cluster, pod, self._world.clock.timestamp())
        except ApiError as error:
            return str(error)
        return ""

    def fail_liveness(self, name: str, container: str) -> None:
        """Lets the liveness probe of a container fail. A container without one is left alone."""
        pod = self.running(name)
        if pod is None:
            return
        probed = [each["name"] for each in pod["spec"]["containers"] if "livenessProbe" in each]
        if container in probed:
            self._world.kubelet.fail_liveness(pod, container)

    # The registry, and slow nodes.

    def break_registry(self) -> None:
        """Lets all pulls of images fail that a node does not have yet."""
        self._world.kubelet.levers.registry_is_down = True

    def slow_registry(self, seconds: float) -> None:
        """Makes the pull of an image that a node does not have yet longer by `seconds`."""
        self._world.kubelet.levers.extra_pull_seconds = seconds

    def slow_starts(self, seconds: float) -> None:
        """Makes each start of a container longer by `seconds`."""
        self._world.kubelet.levers.extra_start_seconds = seconds

    # The API server, the watches, Metacontroller and the service.

    def refuse_writes(self, times: int, verb: str, kind: str, code: int) -> None:
        """Lets the next `times` writes of Metacontroller fail (`RecordingStore.fail`)."""
        self._world.store.fail(times, verb=verb, kind=kind, code=code)

    def lag(self, kind: str, seconds: float) -> None:
        """Delivers the events of a kind `seconds` late to Metacontroller's cache."""
        self._world.cache.lag[kind] = seconds

    def stall(self, kind: str) -> None:
        """Stops the watch of a kind, so that Metacontroller sees its objects as they are now."""
        self._world.cache.pause(self._world.kinds.find(kind))

    def advance(self, kind: str, events: int) -> None:
        """Lets a stopped watch deliver its oldest events."""
        self._world.cache.advance(self._world.kinds.find(kind), events)

    def resume_watches(self, kinds: Iterable[str]) -> None:
        """Ends the lag and the stop of all watches; `kinds` are those that may have stopped."""
        self._world.cache.lag.clear()
        for kind in kinds:
            self._world.cache.resume(self._world.kinds.find(kind))

    def restart_metacontroller(self) -> None:
        """Restarts Metacontroller, which loses its state in memory and syncs all objects."""
        self._world.restart()

    def stop_service(self) -> None:
        """Lets all calls of the hook fail, because the service does not listen."""
        self._hook.is_down = True

    def start_service(self, forget: Callable[[], None]) -> None:
        """Starts the service again; `forget` drops what a process of the service remembers."""
        self._hook.is_down = False
        forget()

    def heal(self, kinds: Iterable[str]) -> None:
        """Ends all faults of nodes, registry, watches, API server and service.

        `kinds` are the kinds whose watches may have stopped.
        """
        levers = self._world.kubelet.levers
        levers.registry_is_down, levers.extra_pull_seconds, levers.extra_start_seconds = False, 0, 0
        self._world.store.heal()
        self._hook.heal()
        self.recover_nodes()
        self.resume_watches(kinds)
