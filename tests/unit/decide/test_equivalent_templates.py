"""Tests templates with the same meaning: the API server stores the same pod, so only labels of pods
change.

An example is a template to which a default of the API server is added.
"""

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
from tests.equivalent_specs import DIFFERENT, SAMPLES, Spelling, app, fully_written, spellings
from tests.sizes import FULL
from tests.unit.world import World, condition

SPELLINGS = spellings()
SAME = "Adopt/SameMeaning"
_HASH = "tapp_template_hash_key"


def template_of(spec: Document, **metadata: Any) -> Document:
    """Returns a template with this pod spec; `metadata` has further metadata."""
    return {"metadata": {"labels": {"app": "web"}, **metadata}, "spec": spec}


def tapp_with_spec(spec: Document, *, history: bool = True, **more: Any) -> World:
    """Returns a TApp whose template has this pod spec, after it has settled.

    `history` is True if there are ControllerRevisions, and `more` has further fields of the TApp's
    spec.
    """
    parent = tapp(**{"replicas": 3, "template": template_of(spec), **more})
    return World(parent, history=history).settle()


def all_decisions(found: World) -> set[str]:
    """Returns the decisions of the next sync without instance numbers, each once."""
    return set(found.decisions().values())


def running_state(found: World) -> dict[str, Any]:
    """Returns pod name -> UID, spec and container statuses of the pod."""
    return {
        name: (pod["metadata"]["uid"], pod["spec"], pod["status"]["containerStatuses"])
        for name, pod in found.pods.items()
    }


def assert_only_labels_change(found: World, spec: Document, **more: Any) -> World:
    """Edits the template to this pod spec, and checks that pods change only in their labels;
    returns the world.

    `more` has further fields of the edit.
    """
    before, labels = running_state(found), revisions_of(found)
    found.change(template=template_of(spec), **more)
    assert all_decisions(found) == {SAME}
    found.settle()
    assert running_state(found) == before
    assert revisions_of(found) != labels
    assert len(revisions_of(found)) == 1
    assert found.parent["status"]["updatedReplicas"] == len(before)
    assert all_decisions(found) == {"Keep/UpToDate"}
    return found


def revisions_of(found: World) -> set[str]:
    """Returns the different revisions that the labels of the pods have."""
    return {pod["metadata"]["labels"][_HASH] for pod in found.pods.values()}


def test_every_known_default_is_covered_by_a_sample_spec() -> None:
    """Compares the table of defaults with the pairs of specs that the tests use.

    An end-to-end test creates these specs on a real API server.
    """
    tried = {spelling.kind for spelling in SPELLINGS}
    table = {(kind, field) for kind, found in KINDS.items() for field in found.defaults}
    assert table - tried == {
        ("Preferred", "preference"),
        ("PreferredPods", "podAffinityTerm"),
        ("ClaimSpec", "resources"),
    }


def _is_written(spelling: Spelling) -> bool:
    """Returns True if the two specs have different revisions and the first is a valid pod spec."""
    one, other = (canonical(spec) for spec in (spelling.plain, spelling.written))
    return bool(one != other) and not shape_problem(template_of(spelling.plain))


WRITTEN = [spelling for spelling in SPELLINGS if _is_written(spelling)]
FIRSTS = list({each.kind: each for each in reversed(WRITTEN)}.values())


@pytest.mark.parametrize("spelling", WRITTEN if FULL else FIRSTS, ids=lambda each: each.name)
def test_default_that_is_added_or_removed_changes_only_labels(spelling: Spelling) -> None:
    """Adds a default to a template and removes it, with and without a history: only labels of the
    pod change.

    By default one sample for each kind of default is tested, and all with `FULL`.
    """
    found = assert_only_labels_change(tapp_with_spec(spelling.plain, replicas=1), spelling.written)
    assert_only_labels_change(found, spelling.plain)
    assert_only_labels_change(
        tapp_with_spec(spelling.written, history=False, replicas=1), spelling.plain
    )


@pytest.mark.parametrize("spelling", SPELLINGS, ids=lambda each: each.name)
def test_plan_shows_no_effect_for_a_default_that_is_added(spelling: Spelling) -> None:
    found = differences(template_of(spelling.plain), template_of(spelling.written))
    assert {line.effect for line in found} <= {Effect.SAME}


@pytest.mark.parametrize("history", [True, False], ids=["history", "no history"])
@pytest.mark.parametrize(("before", "after"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_specs_that_the_api_server_stores_differently_cause_an_update(
    before: Document, after: Document, history: bool
) -> None:
    found = tapp_with_spec(before, history=history).change(template=template_of(after))
    assert not all_decisions(found) & {SAME, "Keep/UpToDate"}
    born = found.uids()
    assert not set(found.settle().uids().values()) & set(born.values())


def _chosen(seed: int) -> Any:
    chance = random.Random(seed)
    return lambda _: chance.random() < 0.5


@given(st.sampled_from(sorted(SAMPLES)), st.integers(), st.integers(), st.booleans())
def test_any_set_of_defaults_can_be_added_or_removed_without_an_update(
    name: str, one: int, other: int, history: bool
) -> None:
    before, after = (fully_written(SAMPLES[name], _chosen(seed)) for seed in (one, other))
    found = tapp_with_spec(before, history=history)
    pods = running_state(found)
    found.change(template=template_of(after))
    assert all_decisions(found) <= {SAME, "Keep/UpToDate"}
    assert running_state(found.settle()) == pods


_FIELDS = sorted(
    (kind, field)
    for kind, found in KINDS.items()
    for field, default in found.defaults.items()
    if not isinstance(default, dict)
)


@given(st.sampled_from(_FIELDS), st.integers(), st.booleans())
def test_value_other_than_the_default_always_causes_an_update(
    where: tuple[str, str], seed: int, history: bool
) -> None:
    """Sets a field to a value other than its default, and other fields to their defaults: the pods
    are updated.
    """
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
    found = tapp_with_spec(spelling.plain, history=history)
    found.change(template=template_of(fully_written(after, _chosen(seed))))
    assert not all_decisions(found) & {SAME, "Keep/UpToDate"}


def _sample_of(spelling: Spelling) -> str:
    return next(name for name in SAMPLES if spelling.name.startswith(f"{name}."))


PLAIN = app(ports=[{"containerPort": 80}])
WRITTEN_OUT = app(
    ports=[{"containerPort": 80, "protocol": "TCP"}], imagePullPolicy="IfNotPresent"
) | {"restartPolicy": "Always", "terminationGracePeriodSeconds": 30}


def with_image(spec: Document, image: str) -> Document:
    """Returns the pod spec with another image of its first container."""
    return {**spec, "containers": [{**spec["containers"][0], "image": image}]}


def test_labels_are_written_without_budget_and_while_updates_are_paused() -> None:
    """Adds defaults while updates are paused and an instance is broken: all pods get their labels
    at once.
    """
    found = tapp_with_spec(PLAIN, updateStrategy={"paused": True, "maxUnavailable": 1})
    found.modify(0, builders.crashing)
    found.change(template=template_of(WRITTEN_OUT))
    assert all_decisions(found) == {SAME}
    answer = found.sync()
    assert "paused" not in condition(answer, "Progressing")["message"]  # type: ignore[index]
    assert len(found.writes) >= 3


def test_pod_on_hold_gets_its_labels_when_the_hold_ends() -> None:
    """Adds defaults while a pod is on hold: it gets its labels after the hold.

    There is no pending action, because the pod needs no update.
    """
    found = tapp_with_spec(PLAIN)
    held = {"apps.tkestack.io/hold": "a match is on"}
    found.modify(1, lambda pod: _annotated(pod, held)).settle()
    before = running_state(found)
    found.change(template=template_of(WRITTEN_OUT))
    assert found.decisions() == {0: SAME, 1: "Keep/UpToDate", 2: SAME}
    found.settle()
    assert "apps.tkestack.io/wanted" not in found.pod(1)["metadata"]["annotations"]
    found.modify(1, lambda pod: _annotated(pod, {"apps.tkestack.io/hold": ""}))
    assert found.decisions()[1] == SAME
    assert running_state(found.settle()) == before
    assert len(revisions_of(found)) == 1


def _annotated(pod: Document, more: Document) -> Document:
    metadata = pod["metadata"]
    return {
        **pod,
        "metadata": {**metadata, "annotations": {**metadata.get("annotations", {}), **more}},
    }


def test_new_image_together_with_added_defaults_is_an_update_in_place() -> None:
    """Changes the image and adds defaults: the containers restart in place, one instance after the
    other.
    """
    found = tapp_with_spec(PLAIN)
    born = found.uids()
    found.change(template=template_of(with_image(WRITTEN_OUT, "app:2")))
    assert all_decisions(found) == {"UpdateInPlace/TemplateChanged", "Keep/WaitingForBudget"}
    found.settle()
    assert found.uids() == born
    assert found.container(2)["image"] == "app:2"


def test_new_label_together_with_added_defaults_waits_for_the_budget() -> None:
    """Adds a label and defaults: a label of the template is a real change, which waits for the
    budget.
    """
    found = tapp_with_spec(PLAIN)
    born = running_state(found)
    found.change(template=template_of(WRITTEN_OUT, labels={"app": "web", "tier": "front"}))
    assert all_decisions(found) == {"UpdateInPlace/TemplateChanged", "Keep/WaitingForBudget"}
    assert running_state(found.settle()) == born


def test_running_update_in_place_continues_when_defaults_are_added() -> None:
    """Adds defaults during an update in place: the record of the update stays, and no pod is
    replaced.

    The instance is unavailable until the update ends.
    """
    found = tapp_with_spec(PLAIN).change(template=template_of(with_image(PLAIN, "app:2")))
    found.sync()
    found.sync()
    key = "apps.tkestack.io/in-place-update"
    record = found.pod(0)["metadata"]["annotations"][key]
    found.change(template=template_of(with_image(WRITTEN_OUT, "app:2")))
    assert found.decisions()[0] == SAME
    assert "UpdateInPlace" not in str(found.decisions())
    found.sync()
    assert found.pod(0)["metadata"]["annotations"][key] == record
    born = found.uids()
    assert found.settle().uids() == born


def test_kept_instance_keeps_its_revision_label_until_the_partition_is_lowered() -> None:
    """Adds defaults with a partition: the kept instance keeps its label, and gets the new one
    without a restart.
    """
    found = tapp_with_spec(PLAIN, updateStrategy={"partition": 1})
    before = running_state(found)
    found.change(template=template_of(WRITTEN_OUT))
    assert found.decisions() == {0: SAME, 1: SAME, 2: "Keep/Kept"}
    found.settle()
    assert found.parent["status"]["updatedReplicas"] == 2
    found.change(updateStrategy={"partition": 0})
    assert found.decisions()[2] == SAME
    assert running_state(found.settle()) == before


@pytest.mark.parametrize("history", [True, False], ids=["history", "no history"])
def test_pods_with_an_image_digest_still_match_their_template(history: bool) -> None:
    """The images of pods have a digest, from a restart in place or a registry mirror: added
    defaults change labels only.
    """
    found = tapp_with_spec(PLAIN, history=history)
    for id in range(3):
        found.modify(id, lambda pod: {**pod, "spec": with_image(pod["spec"], f"app:1@{DIGEST}")})
    assert_only_labels_change(found.settle(), WRITTEN_OUT)


DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize("history", [True, False], ids=["history", "no history"])
def test_templates_are_compared_after_placeholders_are_filled_in(history: bool) -> None:
    found = tapp_with_spec(
        {**app(args=["--shard=$(tapp.index)"]), "nodeSelector": {"zone": "$(tapp.values.zone)"}},
        history=history,
        values={"0": {"zone": "a"}},
        defaultValues={"zone": "b"},
    )
    before = running_state(found)
    spec = {**found.parent["spec"]["template"]["spec"], "restartPolicy": "Always"}
    found.change(template=template_of(spec))
    assert all_decisions(found) == {SAME}
    assert running_state(found.settle()) == before
    found.change(
        template=template_of({**spec, "dnsPolicy": "ClusterFirst"}), values={"0": {"zone": "c"}}
    )
    decisions = found.decisions()
    assert decisions[0] == "Recreate/TemplateChanged"
    assert decisions[1] == SAME
    assert decisions[2] == SAME


@pytest.mark.parametrize("mode", [None, "InPlace", "Ignore"], ids=["default", "InPlace", "Ignore"])
def test_requests_that_equal_the_limits_can_be_added_without_an_update(mode: str | None) -> None:
    strategy = {"inPlaceUpdateStrategy": {"resources": mode} if mode else {}}
    limits = {"limits": {"cpu": "1", "memory": "1Gi"}}
    written = {**limits, "requests": limits["limits"]}
    found = tapp_with_spec(app(resources=limits), updateStrategy=strategy)
    before = running_state(found)
    found.change(template=template_of({**app(resources=written), "restartPolicy": "Always"}))
    assert all_decisions(found) == {SAME}
    assert running_state(found.settle()) == before


def test_changed_resources_and_an_added_default_cause_no_update_with_resources_ignore() -> None:
    strategy = {"inPlaceUpdateStrategy": {"resources": "Ignore"}}
    found = tapp_with_spec(app(resources={"requests": {"cpu": "1"}}), updateStrategy=strategy)
    after = {**app(resources={"requests": {"cpu": "2"}}), "restartPolicy": "Always"}
    assert_only_labels_change(found, after)


def test_pull_policy_of_the_old_tag_stays_after_an_update_in_place() -> None:
    """Updates in place to the tag `latest`, and writes out its default pull policy Always: the pods
    are replaced.

    The pod still has the default IfNotPresent of its earlier tag.
    """
    found = tapp_with_spec(app("app:1")).change(template=template_of(app("app:latest"))).settle()
    assert found.container(0)["imagePullPolicy"] == "IfNotPresent"
    born = found.uids()
    assert_only_labels_change(found, {**app("app:latest"), "restartPolicy": "Always"})
    found.change(template=template_of(app("app:latest", imagePullPolicy="Always"))).settle()
    assert found.uids() != born
    assert found.container(0)["imagePullPolicy"] == "Always"


def test_container_that_reads_its_revision_label_does_not_restart() -> None:
    """Adds a default while a container reads the revision label: the container does not restart.

    The container reads the new revision when it starts the next time.
    """
    field = {"fieldPath": f"metadata.labels['{_HASH}']"}
    env = [{"name": "REVISION", "valueFrom": {"fieldRef": field}}]
    assert_only_labels_change(
        tapp_with_spec(app(env=env)), {**app(env=env), "restartPolicy": "Always"}
    )


def test_default_tolerations_of_the_cluster_can_be_added_without_an_update() -> None:
    """Writes out the tolerations that admission adds: only labels change.

    With other seconds than those of the cluster, the pods are updated.
    """

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

    assert_only_labels_change(tapp_with_spec(app()), tolerating(300))
    found = tapp_with_spec(app()).change(template=template_of(tolerating(60)))
    assert SAME not in all_decisions(found)
    assert not [
        line
        for line in differences(template_of(app()), template_of(tolerating(300)))
        if line.effect is not Effect.SAME
    ]


def test_emptydir_that_becomes_a_claim_causes_an_update() -> None:
    """Replaces an emptyDir by a claim template of the same name: the pods are updated.

    The edit only removes the volume from the template, but the pods change.
    """
    mounts = [{"name": "data", "mountPath": "/data"}]
    found = tapp_with_spec(
        {**app(volumeMounts=mounts), "volumes": [{"name": "data", "emptyDir": {}}]}
    )
    found.change(
        template=template_of(app(volumeMounts=mounts)),
        volumeClaimTemplates=[builders.claim_template()],
    )
    assert SAME not in all_decisions(found)


@pytest.mark.parametrize("value", [0, 1, "x", True, [], [[]], [1], {"a": 1}, None], ids=repr)
def test_values_of_a_wrong_type_can_be_compared(value: Any) -> None:
    """Compares specs with a value of a wrong type in each field: the comparison raises no error.

    The API server refuses such values.
    """
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
