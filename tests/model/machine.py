"""The model: what people, nodes, networks and Metacontroller may do to a TApp, in any order.

Every rule is one event, and then some time passes. `Cluster` is the same without chance, for named
regression tests: its methods are the events.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.model import specs
from tests.model.cluster import KINDS, Cluster, Document

waits = st.sampled_from([0.0, 0.0, 0.12, 0.3, 0.3, 1.0, 1.0, 3.0, 3.0, 12.0])
shorts = st.sampled_from([0.3, 1.0, 2.0, 6.0])
kinds = st.sampled_from(KINDS)
numbers = st.integers(0, specs.MOST - 1)


class Model(RuleBasedStateMachine):
    """Random lives."""

    totals: ClassVar[Counter[str]] = Counter()
    """Over all runs: steps, lives, and what the judge counted."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster: Cluster | None = None
        self.delete_at_end = False

    @property
    def world(self) -> Cluster:
        assert self.cluster is not None
        return self.cluster

    @initialize(
        spec=specs.tapps(),
        seed=st.integers(0, 7),
        admission=st.sampled_from(["", "", "lean", "sidecar", "mirror", "lean mirror"]),
        keep_finished=st.booleans(),
        lag=st.booleans(),
        delete_at_end=st.booleans(),
        old_server=st.sampled_from([False, False, True]),
        managed_fields=st.booleans(),
    )
    def begin(  # noqa: PLR0913 - all that one life begins with
        self,
        *,
        spec: Document,
        seed: int,
        admission: str,
        keep_finished: bool,
        lag: bool,
        delete_at_end: bool,
        old_server: bool,
        managed_fields: bool,
    ) -> None:
        self.cluster = Cluster(spec, seed=seed, admission=admission, keep_finished=keep_finished)
        self.delete_at_end = delete_at_end
        if old_server:
            self.cluster.old_server()
        if not managed_fields:
            self.cluster.without_managed_fields()
        if lag:
            self.cluster.set_lag("Pod", 0.5)
        self.cluster.run(6.0)

    def _pass(self, seconds: float) -> None:
        self.totals["steps"] += 1
        self.world.run(seconds)

    # The author.

    @rule(name=specs.names, image=specs.images, wait=waits)
    def new_image(self, name: str, image: str, wait: float) -> None:
        self.world.edit(lambda spec: specs.set_image(spec, name, image))
        self._pass(wait)

    @rule(name=specs.names, first=specs.images, second=specs.images, between=shorts, wait=waits)
    def two_images_in_a_row(
        self, name: str, first: str, second: str, between: float, wait: float
    ) -> None:
        self.world.edit(lambda spec: specs.set_image(spec, name, first))
        self.world.run(between)
        self.world.edit(lambda spec: specs.set_image(spec, name, second))
        self._pass(wait)

    @rule(name=specs.names, probes=specs.probes, wait=waits)
    def new_probes(self, name: str, probes: Document, wait: float) -> None:
        self.world.edit(lambda spec: specs.set_probes(spec, name, probes))
        self._pass(wait)

    @rule(name=specs.names, tag=st.integers(1, 3), wait=waits)
    def new_helper_image(self, name: str, tag: int, wait: float) -> None:
        self.world.edit(lambda spec: specs.set_helper_image(spec, name, tag))
        self._pass(wait)

    @rule(name=specs.names, value=st.sampled_from(["a", "b", "c"]), wait=waits)
    def new_env(self, name: str, value: str, wait: float) -> None:
        self.world.edit(lambda spec: specs.set_env(spec, name, value))
        self._pass(wait)

    @rule(name=specs.names, value=st.sampled_from(["x", "y", None]), wait=waits)
    def new_label(self, name: str, value: str | None, wait: float) -> None:
        self.world.edit(lambda spec: specs.set_label(spec, name, value))
        self._pass(wait)

    @rule(name=specs.names, body=specs.templates(), wait=waits)
    def new_template(self, name: str, body: Document, wait: float) -> None:
        def change(spec: Document) -> None:
            if name == "default":
                spec["template"] = body
            else:
                spec["templatePool"][name] = body

        self.world.edit(change)
        self._pass(wait)

    @rule(id=numbers, name=st.sampled_from([*specs.POOL, specs.TYPO, None]), wait=waits)
    def assign(self, id: int, name: str | None, wait: float) -> None:
        self.world.edit(lambda spec: _put(spec["templates"], str(id), name))
        self._pass(wait)

    @rule(name=st.sampled_from([*specs.POOL, specs.TYPO, None]), wait=waits)
    def default_template(self, name: str | None, wait: float) -> None:
        self.world.edit(lambda spec: _put(spec, "defaultTemplateName", name))
        self._pass(wait)

    @rule(name=st.sampled_from([*specs.POOL, specs.TYPO, None]), wait=waits)
    def rolling_template(self, name: str | None, wait: float) -> None:
        self.world.edit(lambda spec: _put(spec["updateStrategy"], "template", name))
        self._pass(wait)

    @rule(rolling=specs.budgets, force=st.none() | specs.budgets, wait=waits)
    def new_budgets(self, rolling: Any, force: Any, wait: float) -> None:
        def change(spec: Document) -> None:
            strategy = spec["updateStrategy"]
            strategy["maxUnavailable"] = rolling
            _put(strategy, "forceUpdate", force and {"maxUnavailable": force})

        self.world.edit(change)
        self._pass(wait)

    @rule(replicas=specs.replicas, wait=waits)
    def scale(self, replicas: int, wait: float) -> None:
        self.world.edit(lambda spec: _put(spec, "replicas", replicas))
        self._pass(wait)

    @rule(id=numbers, kill=st.booleans(), wait=waits)
    def kill_or_start(self, id: int, kill: bool, wait: float) -> None:
        statuses = "Killed" if kill else None
        self.world.edit(lambda spec: _put(spec.setdefault("statuses", {}), str(id), statuses))
        self._pass(wait)

    @rule(paused=st.booleans(), wait=waits)
    def pause(self, paused: bool, wait: float) -> None:
        self.world.edit(lambda spec: _put(spec["updateStrategy"], "paused", paused))
        self._pass(wait)

    @rule(seconds=st.sampled_from([0, 2, 5]), wait=waits)
    def min_ready_seconds(self, seconds: int, wait: float) -> None:
        self.world.edit(lambda spec: _put(spec, "minReadySeconds", seconds))
        self._pass(wait)

    @rule(
        never_migrate=st.booleans(),
        service=st.sampled_from([None, "web"]),
        retention=specs.retentions,
        claims=st.booleans(),
        wait=waits,
    )
    def other_fields(
        self,
        never_migrate: bool,
        service: str | None,
        retention: Document,
        claims: bool,
        wait: float,
    ) -> None:
        def change(spec: Document) -> None:
            spec["neverMigrate"] = never_migrate
            _put(spec, "serviceName", service)
            spec["persistentVolumeClaimRetentionPolicy"] = retention
            if claims:
                spec["volumeClaimTemplates"] = [specs.claim("data"), specs.claim("logs")]

        self.world.edit(change)
        self._pass(wait)

    @rule(back=st.integers(1, 3), wait=waits)
    def roll_back(self, back: int, wait: float) -> None:
        self.world.roll_back(back)
        self._pass(wait)

    @rule(wait=waits)
    def repair(self, wait: float) -> None:
        self.world.edit(specs.repair)
        self._pass(wait)

    @rule(id=numbers, wait=waits)
    def delete_a_pod_by_hand(self, id: int, wait: float) -> None:
        self.world.delete_pod(id)
        self._pass(wait)

    # Kubelets and nodes.

    @rule(id=numbers, code=st.sampled_from([0, 1]), only_app=st.booleans(), wait=waits)
    def containers_exit(self, id: int, code: int, only_app: bool, wait: float) -> None:
        self.world.finish(id, code, "app" if only_app else None)
        self._pass(wait)

    @rule(id=numbers, wait=waits)
    def evict(self, id: int, wait: float) -> None:
        self.world.evict(id)
        self._pass(wait)

    @rule(start=st.sampled_from([0.2, 1.0, 5.0]), unready=st.sampled_from([0.0, 2.0]), wait=waits)
    def other_speed(self, start: float, unready: float, wait: float) -> None:
        self.world.set_speed(start, unready)
        self._pass(wait)

    @rule(seconds=st.sampled_from([0.5, 4.0, 60.0]), code=st.sampled_from([0, 137]), wait=waits)
    def containers_stop_slowly(self, seconds: float, code: int, wait: float) -> None:
        self.world.set_stop(seconds, code)
        self._pass(wait)

    @rule(image=specs.good_images, seconds=st.sampled_from([0.0, 8.0, 30.0]), wait=waits)
    def post_start_hook(self, image: str, seconds: float, wait: float) -> None:
        self.world.set_hook(image, seconds)
        self._pass(wait)

    @rule(id=numbers, wait=waits)
    def liveness_fails(self, id: int, wait: float) -> None:
        self.world.fail_liveness(id)
        self._pass(wait)

    @rule(number=st.integers(0, 2), wait=waits)
    def kubelet_restarts(self, number: int, wait: float) -> None:
        self.world.restart_kubelet(f"node-{number}")
        self._pass(wait)

    @rule(number=st.integers(0, 1), seconds=shorts, wait=waits)
    def node_is_silent_for_a_moment(self, number: int, seconds: float, wait: float) -> None:
        for _ in range(2):
            self.world.toggle_node(f"node-{number}")
            self.world.run(seconds)
        self._pass(wait)

    @rule(image=st.sampled_from([specs.GOOD[1], specs.GOOD[2]]), wait=waits)
    def image_goes_bad(self, image: str, wait: float) -> None:
        self.world.spoil(image)
        self._pass(wait)

    @rule(wait=waits)
    def images_get_well(self, wait: float) -> None:
        self.world.heal_images()
        self._pass(wait)

    @rule(refuse=st.booleans(), hang=st.booleans(), wait=waits)
    def kubelet_moods(self, refuse: bool, hang: bool, wait: float) -> None:
        self.world.set_moods(refuse=refuse, hang=hang)
        self._pass(wait)

    @rule(number=st.integers(0, 1), wait=waits)
    def lose_or_recover_a_node(self, number: int, wait: float) -> None:
        self.world.toggle_node(f"node-{number}")
        self._pass(wait)

    # The API server, the hook and Metacontroller.

    @rule(
        times=st.integers(1, 3),
        verb=st.sampled_from(["create", "update", "delete", "status", ""]),
        kind=st.sampled_from(["Pod", "Pod", "PersistentVolumeClaim", ""]),
        code=st.sampled_from([409, 422, 500]),
        wait=waits,
    )
    def writes_fail(self, times: int, verb: str, kind: str, code: int, wait: float) -> None:
        self.world.world.store.fail(times, verb=verb, kind=kind, code=code)
        self._pass(wait)

    @rule(
        status=st.sampled_from([0, 0, 500, 429]),
        times=st.integers(1, 2),
        after_deciding=st.booleans(),
        wait=waits,
    )
    def hook_fails(self, status: int, times: int, after_deciding: bool, wait: float) -> None:
        self.world.world.hook.fail(times, status=status, after_deciding=after_deciding)
        self._pass(wait)

    @rule(kind=kinds, seconds=st.sampled_from([0.0, 0.05, 0.5, 2.0]), wait=waits)
    def lag(self, kind: str, seconds: float, wait: float) -> None:
        self.world.set_lag(kind, seconds)
        self._pass(wait)

    @rule(kind=kinds, wait=waits)
    def watch_stalls(self, kind: str, wait: float) -> None:
        self.world.stall(kind)
        self._pass(wait)

    @rule(kind=kinds, events=st.integers(1, 3), wait=waits)
    def watch_moves_a_little(self, kind: str, events: int, wait: float) -> None:
        self.world.advance(kind, events)
        self._pass(wait)

    @rule(wait=waits)
    def watches_recover(self, wait: float) -> None:
        self.world.resume_watches()
        self._pass(wait)

    @rule(seconds=st.sampled_from([0.0, 0.05, 0.5]), wait=waits)
    def slow_hook(self, seconds: float, wait: float) -> None:
        self.world.world.metacontroller.hook_seconds = seconds
        self._pass(wait)

    @rule(wait=waits)
    def sync_once_more(self, wait: float) -> None:
        self.world.sync_once_more()
        self._pass(wait)

    @rule(wait=waits)
    def metacontroller_restarts(self, wait: float) -> None:
        self.world.world.metacontroller.restart()
        self._pass(wait)

    @precondition(lambda self: self.cluster is not None)
    @rule(wait=st.sampled_from([1.0, 5.0, 20.0, 60.0]))
    def nothing(self, wait: float) -> None:
        self._pass(wait)

    def teardown(self) -> None:
        """Faults end, the author repairs the spec: the goal is reached, and then there is peace."""
        if self.cluster is None:
            return
        try:
            self.cluster.comes_to_rest()
            if self.delete_at_end:
                self.cluster.ends()
        finally:
            self.totals["lives"] += 1
            self.totals.update(self.cluster.judge.counts)
            self.totals["syncs"] += self.cluster.syncs


def _put(where: Document, key: str, value: object) -> None:
    if value is None:
        where.pop(key, None)
    else:
        where[key] = value
