"""Defines the model: events of users, nodes, networks and Metacontroller, in any order.

Each rule of hypothesis is one event, after which a random time passes. A rule that needs one call
is a row of a table. `Cluster` has the same events as methods, for regression tests with a fixed
sequence.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests import holds
from tests.builders import claim_template
from tests.model import specs
from tests.model.cluster import Cluster, Document
from tests.model.node_rules import Draws, NodeRules, befalls, edits, kinds, numbers, shorts, waits
from tests.model.resizer import FAULTS


def _field(*path: str) -> Callable[..., None]:
    """Returns a function that sets the field at `path` of a spec to a drawn value; None removes the
    field.
    """

    def change(spec: Document, **drawn: object) -> None:
        (value,) = drawn.values()
        for key in path[:-1]:
            spec = spec[key]
        specs.put(spec, path[-1], value)

    return change


def _assign(spec: Document, id: int, name: str | None) -> None:
    specs.put(spec["templates"], str(id), name)


def _kill(spec: Document, id: int, *, kill: bool) -> None:
    specs.put(spec.setdefault("statuses", {}), str(id), "Killed" if kill else None)


_NAMES = st.sampled_from([*specs.POOL, specs.TYPO, None])
_IN = "updateStrategy"

EDITS: dict[str, tuple[Callable[..., None], Draws]] = {
    "new_image": (specs.set_image, {"name": specs.names, "image": specs.images}),
    "new_probes": (specs.set_probes, {"name": specs.names, "probes": specs.probes}),
    "new_helper_image": (specs.set_helper_image, {"name": specs.names, "tag": st.integers(1, 3)}),
    "new_env": (specs.set_env, {"name": specs.names, "value": st.sampled_from(["a", "b", "c"])}),
    "who_decides_on_resources": (specs.set_mode, {"mode": specs.modes}),
    "new_label": (
        specs.set_label, {"name": specs.names, "value": st.sampled_from(["x", "y", None])}
    ),
    "a_value_each": (
        specs.set_own, {"name": specs.names, "where": st.sampled_from(list(specs.OWN))}
    ),
    "own_value": (
        lambda spec, id, value: specs.set_value(spec, id, *value),
        {"id": numbers, "value": specs.own_values},
    ),
    "assign": (_assign, {"id": numbers, "name": _NAMES}),
    "default_template": (_field("defaultTemplateName"), {"name": _NAMES}),
    "rolling_template": (_field(_IN, "template"), {"name": _NAMES}),
    "new_hold_limits": (
        specs.set_hold_limits, {"updates": specs.hold_limits, "deletions": specs.hold_limits}
    ),
    "new_partition": (_field(_IN, "partition"), {"partition": specs.partitions}),
    "new_deadline": (_field("progressDeadlineSeconds"), {"seconds": specs.deadlines}),
    "one_after_another": (_field("podManagementPolicy"), {"policy": specs.policies}),
    "scale": (_field("replicas"), {"replicas": specs.replicas}),
    "new_gate": (specs.set_gate, {"name": specs.names, "has_gate": st.booleans()}),
    "new_grace_period": (specs.set_grace, {"seconds": specs.graces}),
    "images_first": (specs.set_pre_pull, {"pulls": st.booleans()}),
    "kill_or_start": (_kill, {"id": numbers, "kill": st.booleans()}),
    "pause": (_field(_IN, "paused"), {"paused": st.booleans()}),
    "min_ready_seconds": (_field("minReadySeconds"), {"seconds": st.sampled_from([0, 2, 5])}),
    "services": (specs.set_service, {"port": specs.service_ports}),
    "evictions": (specs.set_evictions, {"most": specs.evictions}),
    "repair": (specs.repair, {}),
}  # fmt: skip
"""Name of a rule -> the function that edits the spec, and the strategies for its arguments."""


def _slow_hook(cluster: Cluster, seconds: float) -> None:
    """Delays each response of the hook by `seconds` seconds, as a slow service or the pacing of
    large TApps does.
    """
    cluster.world.metacontroller.hook_seconds = seconds


EVENTS: dict[str, tuple[Callable[..., object], Draws]] = {
    # Users and programs.
    "roll_back": (Cluster.roll_back, {"back": st.integers(1, 3)}),
    "matches_end": (partial(Cluster.release_all, asked_only=True), {}),
    "what_is_wanted_is_garbled": (
        Cluster.annotate,
        {
            "id": numbers,
            "key": st.sampled_from([holds.WANTED, holds.WANTED_SINCE]),
            "text": st.sampled_from([None, "Delete", "x", "2099-01-01T00:00:00Z"]),
        },
    ),
    "delete_a_pod_by_hand": (Cluster.delete_pod, {"id": numbers}),
    "ask_a_pod_to_restart": (
        Cluster.ask_to_restart,
        {
            "id": numbers,
            "container": st.sampled_from(["", "app", "log", "typo"]),
            "text": st.sampled_from(["1", "2", "3"]),
        },
    ),
    # The API server, the hook and Metacontroller.
    "writes_fail": (
        lambda cluster, **drawn: cluster.world.store.fail(**drawn),
        {
            "times": st.integers(1, 3),
            "verb": st.sampled_from(["create", "update", "delete", "status", "status", ""]),
            "kind": st.sampled_from(["Pod", "Pod", "PersistentVolumeClaim", ""]),
            "code": st.sampled_from([409, 422, 500]),
        },
    ),
    "hook_fails": (
        lambda cluster, **drawn: cluster.world.hook.fail(**drawn),
        {
            "status": st.sampled_from([0, 0, 500, 429]),
            "times": st.integers(1, 2),
            "after_deciding": st.booleans(),
        },
    ),
    "component_resize": (Cluster.install_resize, {"installed": st.booleans()}),
    "lag": (Cluster.set_lag, {"kind": kinds, "seconds": st.sampled_from([0.0, 0.05, 0.5, 2.0])}),
    "watch_stalls": (Cluster.stall, {"kind": kinds}),
    "watch_moves_a_little": (Cluster.advance, {"kind": kinds, "events": st.integers(1, 3)}),
    "watches_recover": (Cluster.resume_watches, {}),
    "slow_hook": (_slow_hook, {"seconds": st.sampled_from([0.0, 0.05, 0.5, 1.0])}),
    "sync_once_more": (Cluster.sync_once_more, {}),
    "metacontroller_restarts": (lambda cluster: cluster.world.restart(), {}),
    "decorator_is_away_or_slow": (
        Cluster.set_decorator,
        {"served": st.booleans(), "seconds": st.sampled_from([0.0, 0.05, 0.5, 3.0])},
    ),
}
"""Name of a rule -> the event of the cluster, and the strategies for its arguments."""


@befalls(EVENTS)
@befalls({name: (edits(change), draws) for name, (change, draws) in EDITS.items()})
class Model(NodeRules):
    """Plays random lives of a TApp: the rules of users, the API server and Metacontroller.

    The rules of kubelets and nodes are inherited.
    """

    @initialize(
        spec=specs.tapps(),
        seed=st.integers(0, 7),
        admission=st.sampled_from(["", "", "lean", "sidecar", "mirror", "lean mirror"]),
        keep_finished=st.booleans(),
        lag=st.booleans(),
        delete_at_end=st.booleans(),
        old_server=st.sampled_from([False, False, True]),
        managed_fields=st.booleans(),
        nodes=st.sampled_from([3, 3, 4, 5]),
        lost_node_seconds=specs.lost_node_seconds,
        kubelets_resize=st.sampled_from([True, True, False]),
        resize=st.sampled_from([True, True, False]),
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
        nodes: int,
        lost_node_seconds: int | None,
        kubelets_resize: bool,
        resize: bool,
    ) -> None:
        specs.set_domain(spec)
        self.cluster = Cluster(
            spec,
            seed=seed,
            admission=admission,
            keep_finished=keep_finished,
            nodes=nodes,
            zones=("", "ab", "abc")[seed % 3],
        )
        self.cluster.set_lost_node_seconds(lost_node_seconds)
        self.delete_at_end = delete_at_end
        self.cluster.set_kubelets(resize=kubelets_resize)
        self.cluster.install_resize(installed=resize)
        if old_server:
            self.cluster.old_server()
        if not managed_fields:
            self.cluster.without_managed_fields()
        if lag:
            self.cluster.set_lag("Pod", 0.5)
        self.cluster.run(6.0)

    # The user who owns the TApp.

    @rule(name=specs.names, first=specs.images, second=specs.images, between=shorts, wait=waits)
    def two_images_in_a_row(
        self, name: str, first: str, second: str, between: float, wait: float
    ) -> None:
        self.world.edit(lambda spec: specs.set_image(spec, name, first))
        self.world.run(between)
        self.world.edit(lambda spec: specs.set_image(spec, name, second))
        self._pass(wait)

    @rule(image=specs.good_images, seconds=st.sampled_from([2.0, 7.0, 30.0]), wait=waits)
    def roll_in_peace(self, image: str, seconds: float, wait: float) -> None:
        """Rolls out an image after a time without faults, so that pods have time to leave their
        Services.

        The rollout gets `seconds` seconds without faults. At the end `wait` seconds pass, as after
        every rule.
        """
        self.world.calm()
        self.world.run(40.0)
        self.world.edit(lambda spec: specs.set_images(spec, image))
        self.world.run(seconds)
        self._pass(wait)

    @rule(
        rolled=st.permutations(specs.GOOD),
        seconds=st.sampled_from([7.0, 9.0, 12.0, 14.0]),
        wait=waits,
    )
    def roll_back_in_the_middle(self, rolled: list[str], seconds: float, wait: float) -> None:
        """Rolls back while some kubelets are still stopping the container with the old image.

        The first image in `rolled` is rolled out for 60 seconds, and the second one for `seconds`
        seconds. Then the spec of some pods has the wanted image again, which their kubelets have
        not seen yet. At the end `wait` seconds pass, as after every rule.
        """
        self.world.calm()
        for image, lasts in zip(rolled, (60.0, seconds), strict=False):
            self.world.edit(lambda spec, image=image: specs.roll_one_by_one(spec, image))  # type: ignore[misc]
            self.world.run(lasts)
            self.world.set_stop(3.0, 137)
        self.world.roll_back(1)
        self._pass(wait)

    @rule(
        name=specs.names,
        sizes=st.lists(specs.sizes, min_size=1, max_size=3),
        helper=st.booleans(),
        between=shorts,
        wait=waits,
    )
    def new_resources(
        self, name: str, sizes: list[Document | None], helper: bool, between: float, wait: float
    ) -> None:
        for size in sizes:
            self.world.edit(
                lambda spec, size=size: specs.set_resources(spec, name, size, helper=helper)  # type: ignore[misc]
            )
            self.world.run(between)
        self._pass(wait)

    @rule(
        first=specs.burstable,
        sizes=st.lists(specs.burstable, min_size=1, max_size=2),
        seconds=st.sampled_from([0.3, 2.0, 7.0, 30.0]),
        wait=waits,
    )
    def resize_in_peace(
        self, first: Document, sizes: list[Document], seconds: float, wait: float
    ) -> None:
        """Resizes all pods after a time without faults, because resizes are rare under faults.

        The pods get the resources `first`, and later each of `sizes` for `seconds` seconds. At the
        end `wait` seconds pass, as after every rule.
        """
        self.world.calm()
        self.world.set_kubelets(resize=True)
        self.world.install_resize(installed=True)
        self.world.edit(lambda spec: specs.set_mode(spec, "InPlace"))
        for size, between in zip([first, *sizes], [60.0, *[seconds] * len(sizes)], strict=True):
            for name in specs.POOL:
                self.world.edit(
                    lambda spec, name=name, size=size: specs.set_resources(  # type: ignore[misc]
                        spec, name, size, helper=False
                    )
                )
            self.world.run(between)
        self._pass(wait)

    @rule(
        name=specs.names,
        container=st.sampled_from(["", "", "app", "log", "native", "init", "typo"]),
        texts=st.lists(st.sampled_from(["1", "2", "3", None]), min_size=1, max_size=3),
        between=shorts,
        wait=waits,
    )
    def restart_in_place(
        self, name: str, container: str, texts: list[str | None], between: float, wait: float
    ) -> None:
        for text in texts:
            self.world.edit(
                lambda spec, text=text: specs.set_restart(spec, name, container, text)  # type: ignore[misc]
            )
            self.world.run(between)
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

    @rule(rolling=specs.budgets, force=st.none() | specs.budgets, wait=waits)
    def new_budgets(self, rolling: Any, force: Any, wait: float) -> None:
        def change(spec: Document) -> None:
            strategy = spec["updateStrategy"]
            strategy["maxUnavailable"] = rolling
            specs.set_domain(spec)
            specs.put(strategy, "forceUpdate", force and {"maxUnavailable": force})

        self.world.edit(change)
        self._pass(wait)

    @rule(
        name=specs.names, order=specs.orders, text=specs.priorities, id=numbers, own=st.booleans(),
        wait=waits,
    )  # fmt: skip
    def whose_turn(  # noqa: PLR0913, PLR0917 - one draw each
        self, name: str, order: str | None, text: str | None, id: int, own: bool, wait: float
    ) -> None:
        """Changes which instance is updated first.

        Sets `updateStrategy.order` to `order`, and the update priority of a template or, with
        `own`, of a pod to `text`. None removes a setting of the spec.
        """
        self.world.edit(lambda spec: specs.put(spec["updateStrategy"], "order", order))
        if own and text is not None:
            self.world.annotate(id, specs.PRIORITY, text)
        else:
            self.world.edit(lambda spec: specs.set_priority(spec, name, text))
        self._pass(wait)

    @rule(
        ids=st.lists(numbers, min_size=1, max_size=4),
        reason=specs.hold_reasons,
        only=specs.hold_kinds,
        wait=waits,
    )
    def programs_hold(self, ids: list[int], reason: str, only: str | None, wait: float) -> None:
        for id in ids:
            self.world.hold(id, reason, only)
        self._pass(wait)

    @rule(name=specs.names, image=specs.images, partition=specs.partitions, id=numbers, wait=waits)
    def roll_so_far(
        self, name: str, image: str, partition: int | str | None, id: int, wait: float
    ) -> None:
        """Starts a rollout that a partition limits, and deletes the pod of instance `id` 30 seconds
        later.

        A `partition` of None means no partition.
        """

        def change(spec: Document) -> None:
            specs.set_image(spec, name, image)
            specs.put(spec["updateStrategy"], "partition", partition)

        self.world.edit(change)
        self.world.run(30.0)
        self.world.delete_pod(id)
        self._pass(wait)

    @rule(moves=st.booleans(), seconds=specs.lost_node_seconds, wait=waits)
    def force_delete(self, moves: bool, seconds: int | None, wait: float) -> None:
        self.world.edit(lambda spec: specs.put(spec, "forceDeletePod", moves))
        self.world.set_lost_node_seconds(seconds)
        self._pass(wait)

    @rule(
        never_migrate=st.booleans(),
        service=st.sampled_from([None, "web"]),
        retention=specs.retentions,
        size=st.none() | st.sampled_from(specs.SIZES),
        wait=waits,
    )
    def other_fields(
        self,
        never_migrate: bool,
        service: str | None,
        retention: Document,
        size: str | None,
        wait: float,
    ) -> None:
        def change(spec: Document) -> None:
            spec["neverMigrate"] = never_migrate
            specs.put(spec, "serviceName", service)
            spec["persistentVolumeClaimRetentionPolicy"] = retention
            if size is not None:
                both = [claim_template(name, size) for name in ("data", "logs")]
                spec["volumeClaimTemplates"] = both

        self.world.edit(change)
        self._pass(wait)

    # The API server, the hook and Metacontroller.

    @rule(
        faults=st.lists(st.sampled_from(FAULTS), max_size=4),
        pause=st.sampled_from([0.05, 0.05, 0.5, 0.9]),
        late=st.sampled_from([0.0, 0.0, 0.3, 3.0]),
        restarts=st.booleans(),
        wait=waits,
    )
    def resizes_fail(
        self, faults: list[str], pause: float, late: float, restarts: bool, wait: float
    ) -> None:
        component = self.world.component
        component.faults, component.pause, component.late = faults, pause, late
        if restarts:
            component.restart()
        self._pass(wait)

    @rule(wait=waits)
    def decorator_restarts(self, wait: float) -> None:
        self.world.set_decorator(served=True, seconds=0.0)
        self.world.restart_decorator()
        self._pass(wait)

    @precondition(lambda self: self.cluster is not None)
    @rule(wait=st.sampled_from([1.0, 5.0, 20.0, 60.0]))
    def nothing(self, wait: float) -> None:
        self._pass(wait)

    def teardown(self) -> None:
        """Ends a life: ends all faults and repairs the spec.

        The TApp must reach its spec, and then nothing may be written. In some lives the TApp is
        deleted in the end.
        """
        if self.cluster is None:
            return
        try:
            self.cluster.comes_to_rest()
            if self.delete_at_end:
                self.cluster.ends(*self._lost_at_end())
        finally:
            self.totals["lives"] += 1
            self.totals.update(self.cluster.judge.counts)
            self.totals["syncs"] += self.cluster.syncs

    def _lost_at_end(self) -> list[str]:
        """Returns the nodes that stop reporting before the TApp is deleted; empty if pods must not
        move.
        """
        spec = self.world.spec
        moves = spec.get("forceDeletePod") and not spec.get("neverMigrate")
        return ["node-1"] if moves else []
