"""Templates that make the same pod, written in another way: nothing happens but labels."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tapp.declared.differences import Effect, differences
from tapp.declared.meaning import meaning
from tapp.declared.shapes import shape_problem
from tapp.kube.canonical import canonical
from tapp.kube.stored import KINDS
from tests import builders
from tests.builders import Document, tapp
from tests.sizes import FULL
from tests.spellings import DIFFERENT, SAMPLES, Spelling, app, fully_written, spellings
from tests.unit.world import World, condition

SPELLINGS = spellings()
SAME = "Adopt/SameMeaning"
_HASH = "tapp_template_hash_key"


def body(spec: Document, **metadata: Any) -> Document:
    """A template with this spec."""
    return {"metadata": {"labels": {"app": "web"}, **metadata}, "spec": spec}


def world(spec: Document, *, history: bool = True, **more: Any) -> World:
    """Three instances at rest whose template has this spec."""
    parent = tapp(**{"replicas": 3, "template": body(spec), **more})
    return World(parent, history=history).settle()


def reasons(found: World) -> set[str]:
    """The decisions on the instances now."""
    return set(found.decisions().values())


def looks(found: World) -> dict[str, Any]:
    """The pods that there are, and what runs in them."""
    return {
        name: (pod["metadata"]["uid"], pod["spec"], pod["status"]["containerStatuses"])
        for name, pod in found.pods.items()
    }


def only_labels(found: World, spec: Document, **more: Any) -> World:
    """The edit to a template with this spec, which no pod notices but in its labels."""
    before, labels = looks(found), revisions_of(found)
    found.change(template=body(spec), **more)
    assert reasons(found) == {SAME}
    found.settle()
    assert looks(found) == before
    assert revisions_of(found) != labels
    assert len(revisions_of(found)) == 1
    assert found.parent["status"]["updatedReplicas"] == len(before)
    assert reasons(found) == {"Keep/UpToDate"}
    return found


def revisions_of(found: World) -> set[str]:
    """The revisions that pods carry."""
    return {pod["metadata"]["labels"][_HASH] for pod in found.pods.values()}


def test_every_default_of_the_table_has_a_spelling() -> None:
    """As far as a valid pod has it; so all of them are tried here and on a real API server."""
    tried = {spelling.kind for spelling in SPELLINGS}
    table = {(kind, field) for kind, found in KINDS.items() for field in found.defaults}
    assert table - tried == {
        ("Preferred", "preference"),
        ("PreferredPods", "podAffinityTerm"),
        ("ClaimSpec", "resources"),
    }


def _is_written(spelling: Spelling) -> bool:
    """True if the two have different revisions, and pods are made of both."""
    one, other = (canonical(spec) for spec in (spelling.plain, spelling.written))
    return bool(one != other) and not shape_problem(body(spelling.plain))


WRITTEN = [spelling for spelling in SPELLINGS if _is_written(spelling)]
FIRSTS = list({each.kind: each for each in reversed(WRITTEN)}.values())


@pytest.mark.parametrize("spelling", WRITTEN if FULL else FIRSTS, ids=lambda each: each.name)
def test_a_default_that_is_written_out_or_removed_changes_labels_only(spelling: Spelling) -> None:
    """One after the other, and with a history and without: of each kind one, or each (`FULL`)."""
    found = only_labels(world(spelling.plain, replicas=1), spelling.written)
    only_labels(found, spelling.plain)
    only_labels(world(spelling.written, history=False, replicas=1), spelling.plain)


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda each: each.name)
def test_a_plan_says_that_a_default_restarts_nothing(spelling: Spelling) -> None:
    """Each field that an edit shows has no effect."""
    found = differences(body(spelling.plain), body(spelling.written))
    assert {line.effect for line in found} <= {Effect.SAME}


@pytest.mark.parametrize("history", [True, False], ids=["a history", "no history"])
@pytest.mark.parametrize(("before", "after"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_what_the_api_server_stores_otherwise_is_an_update(
    before: Document, after: Document, history: bool
) -> None:
    """Close to the same is not the same."""
    found = world(before, history=history).change(template=body(after))
    assert not reasons(found) & {SAME, "Keep/UpToDate"}
    born = found.uids()
    assert not set(found.settle().uids().values()) & set(born.values())


def _chosen(seed: int) -> Any:
    chance = random.Random(seed)
    return lambda _: chance.random() < 0.5


@given(st.sampled_from(sorted(SAMPLES)), st.integers(), st.integers(), st.booleans())
def test_any_defaults_written_out_make_no_pod_anew(
    name: str, one: int, other: int, history: bool
) -> None:
    """From any subset of them to any other one."""
    before, after = (fully_written(SAMPLES[name], _chosen(seed)) for seed in (one, other))
    found = world(before, history=history)
    pods = looks(found)
    found.change(template=body(after))
    assert reasons(found) <= {SAME, "Keep/UpToDate"}
    assert looks(found.settle()) == pods


_FIELDS = sorted(
    (kind, field)
    for kind, found in KINDS.items()
    for field, default in found.defaults.items()
    if not isinstance(default, dict)
)


@given(st.sampled_from(_FIELDS), st.integers(), st.booleans())
def test_another_value_than_the_default_is_always_an_update(
    where: tuple[str, str], seed: int, history: bool
) -> None:
    """However many defaults are written out or removed beside it."""
    spelling = next(each for each in SPELLINGS if each.kind == where)
    after = copy.deepcopy(spelling.written)
    path = spelling.name.removeprefix(_sample_of(spelling) + ".").split(".")
    holder: Any = after
    for part in path[:-1]:
        holder = holder[int(part) if isinstance(holder, list) else part]
    default = holder[path[-1]]
    holder[path[-1]] = {bool: lambda: not default, int: lambda: default + 7}.get(
        type(default), lambda: f"{default}x"
    )()
    found = world(spelling.plain, history=history)
    found.change(template=body(fully_written(after, _chosen(seed))))
    assert not reasons(found) & {SAME, "Keep/UpToDate"}


def _sample_of(spelling: Spelling) -> str:
    return next(name for name in SAMPLES if spelling.name.startswith(f"{name}."))


PLAIN = app(ports=[{"containerPort": 80}])
WRITTEN_OUT = app(
    ports=[{"containerPort": 80, "protocol": "TCP"}], imagePullPolicy="IfNotPresent"
) | {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}


def with_image(spec: Document, image: str) -> Document:
    """The spec with another image."""
    return {**spec, "containers": [{**spec["containers"][0], "image": image}]}


def test_labels_are_written_at_once_without_budget_also_while_updates_are_paused() -> None:
    """All of them, while two are broken and nothing more may be updated."""
    found = world(PLAIN, updateStrategy={"paused": True, "maxUnavailable": 1})
    found.modify(0, builders.crashing)
    found.change(template=body(WRITTEN_OUT))
    assert reasons(found) == {SAME}
    answer = found.sync()
    assert "paused" not in condition(answer, "Progressing")["message"]  # type: ignore[index]
    assert len(found.writes) >= 3


def test_a_pod_on_hold_gets_its_labels_afterwards() -> None:
    """And it is told of nothing that is wanted, because nothing is."""
    found = world(PLAIN)
    held = {"apps.tkestack.io/hold": "a match is on"}
    found.modify(1, lambda pod: _annotated(pod, held)).settle()
    before = looks(found)
    found.change(template=body(WRITTEN_OUT))
    assert found.decisions() == {0: SAME, 1: "Keep/UpToDate", 2: SAME}
    found.settle()
    assert "apps.tkestack.io/wanted" not in found.pod(1)["metadata"]["annotations"]
    found.modify(1, lambda pod: _annotated(pod, {"apps.tkestack.io/hold": ""}))
    assert found.decisions()[1] == SAME
    assert looks(found.settle()) == before
    assert len(revisions_of(found)) == 1


def _annotated(pod: Document, more: Document) -> Document:
    metadata = pod["metadata"]
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **more}},
    }


def test_another_image_beside_it_is_an_update_in_place() -> None:
    """Only that container restarts, one instance after the other."""
    found = world(PLAIN)
    born = found.uids()
    found.change(template=body(with_image(WRITTEN_OUT, "app:2")))
    assert reasons(found) == {"UpdateInPlace/TemplateChanged", "Keep/WaitingForBudget"}
    found.settle()
    assert found.uids() == born
    assert found.container(2)["image"] == "app:2"


def test_another_label_beside_it_waits_for_the_budget_as_ever() -> None:
    """It is a change of what pods are."""
    found = world(PLAIN)
    born = looks(found)
    found.change(template=body(WRITTEN_OUT, labels={"app": "web", "tier": "front"}))
    assert reasons(found) == {"UpdateInPlace/TemplateChanged", "Keep/WaitingForBudget"}
    assert looks(found.settle()) == born


def test_an_update_in_place_that_is_under_way_goes_on() -> None:
    """Its record stays, and it counts as unavailable until it has ended."""
    found = world(PLAIN).change(template=body(with_image(PLAIN, "app:2")))
    found.sync()
    found.sync()
    key = "apps.tkestack.io/in-place-update"
    record = found.pod(0)["metadata"]["annotations"][key]
    found.change(template=body(with_image(WRITTEN_OUT, "app:2")))
    assert found.decisions()[0] == SAME
    assert "UpdateInPlace" not in str(found.decisions())
    found.sync()
    assert found.pod(0)["metadata"]["annotations"][key] == record
    born = found.uids()
    assert found.settle().uids() == born


def test_who_is_kept_by_the_partition_stays_at_its_revision() -> None:
    """The others get labels; lowering the partition then restarts nothing either."""
    found = world(PLAIN, updateStrategy={"partition": 1})
    before = looks(found)
    found.change(template=body(WRITTEN_OUT))
    assert found.decisions() == {0: SAME, 1: SAME, 2: "Keep/Kept"}
    found.settle()
    assert found.parent["status"]["updatedReplicas"] == 2
    found.change(updateStrategy={"partition": 0})
    assert found.decisions()[2] == SAME
    assert looks(found.settle()) == before


@pytest.mark.parametrize("history", [True, False], ids=["a history", "no history"])
def test_images_that_are_spelt_otherwise_in_pods_are_the_templates(history: bool) -> None:
    """By a restart in place, or a mirror."""
    found = world(PLAIN, history=history)
    for id in range(3):
        found.modify(id, lambda pod: {**pod, "spec": with_image(pod["spec"], f"app:1@{DIGEST}")})
    only_labels(found.settle(), WRITTEN_OUT)


DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize("history", [True, False], ids=["a history", "no history"])
def test_each_instances_own_template_is_compared(history: bool) -> None:
    """Placeholders in what is compared, and values that differ."""
    found = world(
        {**app(args=["--shard=$(tapp.index)"]), "nodeSelector": {"zone": "$(tapp.values.zone)"}},
        history=history,
        values={"0": {"zone": "a"}},
        defaultValues={"zone": "b"},
    )
    before = looks(found)
    spec = {**found.parent["spec"]["template"]["spec"], "restartPolicy": "Always"}
    found.change(template=body(spec))
    assert reasons(found) == {SAME}
    assert looks(found.settle()) == before
    found.change(template=body({**spec, "dnsPolicy": "ClusterFirst"}), values={"0": {"zone": "c"}})
    decisions = found.decisions()
    assert decisions[0] == "Recreate/TemplateChanged"
    assert (decisions[1], decisions[2]) == (SAME, SAME)


@pytest.mark.parametrize("mode", [None, "InPlace", "Ignore"])
def test_requests_of_limits_are_the_same_in_every_mode(mode: str | None) -> None:
    """Written out, and removed."""
    strategy = {"inPlaceUpdateStrategy": {"resources": mode} if mode else {}}
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    written = {**limits, "requests": limits["limits"]}
    found = world(app(resources=limits), updateStrategy=strategy)
    before = looks(found)
    found.change(template=body({**app(resources=written), "restartPolicy": "Always"}))
    assert reasons(found) == {SAME}
    assert looks(found.settle()) == before


def test_other_resources_and_a_default_are_still_left_to_others() -> None:
    """Under `resources: Ignore` both are nothing to pods."""
    strategy = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
    found = world(app(resources={"requests": {"cpu": "1"}}), updateStrategy=strategy)
    after = {**app(resources={"requests": {"cpu": "2"}}), "restartPolicy": "Always"}
    only_labels(found, after)


def test_a_tag_that_came_in_place_leaves_the_pull_policy_of_the_one_before() -> None:
    """`Always`, written out then, is not what the pod has; another default is."""
    found = world(app("app:1")).change(template=body(app("app:latest"))).settle()
    assert found.container(0)["imagePullPolicy"] == "IfNotPresent"
    born = found.uids()
    only_labels(found, {**app("app:latest"), "restartPolicy": "Always"})
    found.change(template=body(app("app:latest", imagePullPolicy="Always"))).settle()
    assert found.uids() != born
    assert found.container(0)["imagePullPolicy"] == "Always"


def test_a_container_that_reads_the_revision_does_not_restart_for_it() -> None:
    """It has the new one from its next start on."""
    field = {"fieldPath": f"metadata.labels['{_HASH}']"}
    env = [{"name": "REVISION", "valueFrom": {"fieldRef": field}}]
    only_labels(world(app(env=env)), {**app(env=env), "restartPolicy": "Always"})


def test_default_tolerations_written_out_are_the_clusters() -> None:
    """With the seconds that the cluster has; others are a difference."""

    def tolerating(seconds: int) -> Document:
        keys = ("not-ready", "unreachable")
        return {
            **app(),
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": seconds,
                }
                for key in keys
            ],
        }

    only_labels(world(app()), tolerating(300))
    found = world(app()).change(template=body(tolerating(60)))
    assert SAME not in reasons(found)
    assert not [
        line
        for line in differences(body(app()), body(tolerating(300)))
        if line.effect is not Effect.SAME
    ]


def test_an_emptydir_that_becomes_a_claim_is_an_update() -> None:
    """Although the template's own volume of that name reaches no pod any more."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    found = world({**app(volumeMounts=mounts), "volumes": [{"name": "data", "emptyDir": {}}]})
    found.change(
        template=body(app(volumeMounts=mounts)), volumeClaimTemplates=[builders.claim_template()]
    )
    assert SAME not in reasons(found)


@pytest.mark.parametrize("value", [0, 1, "x", True, [], [[]], [1], {"a": 1}, None], ids=repr)
def test_values_of_a_wrong_type_are_compared_all_the_same(value: Any) -> None:
    """They are the API server's to refuse."""
    spec: Document = {"containers": [{"name": "app", "image": "app:1"}]}
    for kind in ("PodSpec", "Container"):
        for field in {**KINDS[kind].defaults, **KINDS[kind].parts, "resources": 0, "ports": 0}:
            if field in ("containers", "initContainers", "volumes"):
                continue
            odd = copy.deepcopy(spec)
            (odd if kind == "PodSpec" else odd["containers"][0])[field] = value
            meaning(canonical(odd))
    for field in KINDS["Volume"].parts:
        meaning(canonical({**spec, "volumes": [{"name": "v", field: value}]}))
