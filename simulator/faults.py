"""The faults of a simulated cluster: failures of nodes, pods, registries, watches, the API server
and the service.

`Faults` has a method for each fault, and `Faults.heal` ends all faults. The parameters of the
methods name the pods and nodes to hit, so the caller chooses them. The model tests choose them with
hypothesis, and `simulator.schedule` draws them from a seed.
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
        """Lets nodes stop reporting. Their containers continue to run. Unknown names are
        ignored.
        """
        known = {name_of(node) for node in self._world.list("Node")}
        for name in names:
            if name in known - self.lost:
                self.lost.add(name)
                self._world.nodes.lose(name)

    def recover_nodes(self, *names: str) -> None:
        """Lets lost nodes report again. Without names, all lost nodes report again."""
        for name in sorted(self.lost.intersection(names) if names else self.lost):
            self.lost.discard(name)
            self._world.nodes.recover(name)

    def restart_kubelet(self, node: str) -> None:
        """Restarts the kubelet of a node, unless the node is lost."""
        if node not in self.lost:
            self._world.kubelet.restart(node)

    # Pods.

    def running(self, name: str) -> Object | None:
        """Returns the pod with this name if a kubelet can act on it, otherwise None.

        That is so if the pod is on a node that reports, and is not being deleted.
        """
        try:
            pod = self._world.get("Pod", name, self._namespace)
        except NotFoundError:
            return None
        node = pod["spec"].get("nodeName")
        return pod if node and node not in self.lost and not is_terminating(pod) else None

    def exit(self, name: str, code: int = 1, container: str | None = None) -> bool:
        """Lets a running container of a pod exit with the exit code `code`.

        If `container` is None, all running containers exit.

        Returns False if `running` finds no such pod.
        """
        pod = self.running(name)
        if pod is not None:
            self._world.kubelet.finish(pod, code, container)
        return pod is not None

    def evict_under_pressure(self, name: str) -> bool:
        """Lets the kubelet evict a pod, as it does if its node is low on memory.

        Returns False if `running` finds no such pod, or if the pod has Succeeded or Failed.
        """
        pod = self.running(name)
        if pod is None or (pod.get("status") or {}).get("phase") in COMPLETED:
            return False
        self._world.kubelet.evict(pod)
        return True

    def evict(self, name: str) -> str:
        """Evicts a pod through the API, as `kubectl drain` does.

        Returns "" if the pod was evicted, or the API server's message if it refuses the eviction.
        """
        try:
            pod = self._world.get("Pod", name, self._namespace)
            evict(self._world.cluster, pod, self._world.clock.timestamp())
        except ApiError as error:
            return str(error)
        return ""

    def fail_liveness(self, name: str, container: str) -> None:
        """Lets the liveness probe of a container fail. Does nothing if the container has no
        liveness probe.
        """
        pod = self.running(name)
        if pod is None:
            return
        probed = [each["name"] for each in pod["spec"]["containers"] if "livenessProbe" in each]
        if container in probed:
            self._world.kubelet.fail_liveness(pod, container)

    # The registry, and slow nodes.

    def break_registry(self) -> None:
        """Lets each pull fail if the node does not have the image yet."""
        self._world.kubelet.levers.registry_is_down = True

    def slow_registry(self, seconds: float) -> None:
        """Makes each pull take `seconds` longer if the node does not have the image yet. 0 ends the
        fault.
        """
        self._world.kubelet.levers.extra_pull_seconds = seconds

    def slow_starts(self, seconds: float) -> None:
        """Makes each start of a container take `seconds` longer. 0 ends the fault."""
        self._world.kubelet.levers.extra_start_seconds = seconds

    # The API server, the watches, Metacontroller and the service.

    def refuse_writes(self, times: int, verb: str, kind: str, code: int) -> None:
        """Lets the next `times` matching writes of Metacontroller fail with the HTTP status `code`.

        `RecordingStore.fail` describes the arguments.
        """
        self._world.store.fail(times, verb=verb, kind=kind, code=code)

    def lag(self, kind: str, seconds: float) -> None:
        """Delivers the events of a kind `seconds` late to Metacontroller's cache."""
        self._world.cache.lag[kind] = seconds

    def stall(self, kind: str) -> None:
        """Stops the watch of a kind. Until the watch resumes, Metacontroller's cache keeps the
        objects as they are now.
        """
        self._world.cache.pause(self._world.kinds.find(kind))

    def advance(self, kind: str, events: int) -> None:
        """Lets the stopped watch of a kind deliver its `events` oldest waiting events. The watch
        stays stopped.
        """
        self._world.cache.advance(self._world.kinds.find(kind), events)

    def resume_watches(self, kinds: Iterable[str]) -> None:
        """Ends the delay of all watches, and resumes the stopped watches of the kinds `kinds`."""
        self._world.cache.lag.clear()
        for kind in kinds:
            self._world.cache.resume(self._world.kinds.find(kind))

    def restart_metacontroller(self) -> None:
        """Restarts Metacontroller, which loses its state in memory and syncs all objects."""
        self._world.restart()

    def stop_service(self) -> None:
        """Lets all calls of the hooks fail, as if no process of the service ran."""
        self._hook.is_down = True

    def start_service(self, forget: Callable[[], None]) -> None:
        """Starts the service again. Calls `forget`, which clears the memory of the service's
        process.
        """
        self._hook.is_down = False
        forget()

    def heal(self, kinds: Iterable[str]) -> None:
        """Ends all faults of nodes, registry, watches, API server and service.

        `kinds` are the kinds whose watches may be stopped.
        """
        levers = self._world.kubelet.levers
        levers.registry_is_down, levers.extra_pull_seconds, levers.extra_start_seconds = False, 0, 0
        self._world.store.heal()
        self._hook.heal()
        self.recover_nodes()
        self.resume_watches(kinds)
