"""Tests the reasons for a missing pod: an error of the API server, or another owner of the pod's
name.
"""

from collections.abc import Callable
from typing import Any

import pytest

from simulator.api.store import ForbiddenError
from simulator.objects.kinds import CLAIM, POD, Kind
from simulator.objects.objects import Object, name_of, with_meta
from tapp.kube.owners import controller_ref
from tests.builders import claim_template, manifest
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.sync_errors import record_failures
from tests.plugin.watches import watched
from tests.scenarios.life import Life

QUOTA = "exceeded quota: few, requested: pods=1, used: pods=4, limited: pods=4"
ACCOUNT = 'error looking up service account default/nobody: serviceaccount "nobody" not found'
PRIORITY = "no PriorityClass with name urgent was found"
SECURITY = (
    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "web" '
    "must set securityContext.allowPrivilegeEscalation=false), runAsNonRoot != true"
)
WEBHOOK = 'admission webhook "policy.example.com" denied the request: no such registry, ask [ops]'


def refusing(life: Life, say: Callable[[str], str], *names: str) -> Callable[[], None]:
    """Makes the API server refuse the pods with these names, or all new pods if none is given.

    `say` returns the error for the name of a pod. Returns a function that ends the refusals.
    """

    def policy(operation: str, obj: Object) -> Object:
        meant = obj["kind"] == "Pod" and (not names or name_of(obj) in names)
        if operation == "CREATE" and meant:
            raise ForbiddenError(say(name_of(obj)))
        return obj

    policies = life.world.cluster.admission.policies
    policies.append(policy)
    return lambda: policies.remove(policy)


def forbidden(words: str) -> Callable[[str], str]:
    return lambda name: f'pods "{name}" is forbidden: {words}'


def web(**spec: Any) -> Life:
    life = Life().apply(manifest(**{"replicas": 4, **spec}))
    record_failures(life.world)
    return life


@pytest.mark.parametrize(
    ("say", "words"),
    [
        (forbidden(QUOTA), f"forbidden: {QUOTA}"),
        (forbidden(ACCOUNT), f"forbidden: {ACCOUNT}"),
        (forbidden(PRIORITY), f"forbidden: {PRIORITY}"),
        (forbidden(SECURITY), f"forbidden: {SECURITY}"),
        (lambda name: f'Pod "{name}" is invalid: spec.hostname: Invalid value', "invalid: spec."),
        (lambda _: WEBHOOK, WEBHOOK),
    ],
    ids=["quota", "service account", "priority class", "pod security", "invalid", "webhook"],
)
def test_error_of_the_api_server_is_printed(say: Callable[[str], str], words: str) -> None:
    life = web()
    refusing(life, say)
    life.begin_patch(replicas=6).world.run(45)
    standin = StandIn(life.world)
    text = f"instances 4, 5: not created: the API server refused the pod: {words}"
    for verb in ("status", "why"):
        said = kubectl_tapp(standin, verb, "web")
        assert said.err == ""
        assert said.code == 0
        assert any(line.startswith(text) for line in said.lines)
        assert "is created from template" not in said.out
        assert "PodsNotCreated: pods" not in said.out, "said of the instances already"
    said = kubectl_tapp(standin, "wait", "web")
    assert said.code == 4
    stuck = f"instances 4, 5: not created: the API server refused the pod: {words}"
    assert said.err.startswith(f"error: web is stuck: {stuck}")


def test_each_instance_has_its_own_error() -> None:
    life = web()
    refusing(life, forbidden(QUOTA), "web-4")
    refusing(life, forbidden(PRIORITY), "web-5", "web-6")
    life.begin_patch(replicas=7).world.run(45)
    lines = kubectl_tapp(StandIn(life.world), "status", "web").lines
    assert f"instance 4: not created: the API server refused the pod: forbidden: {QUOTA}" in lines
    assert (
        f"instances 5, 6: not created: the API server refused the pod: forbidden: {PRIORITY}"
        in lines
    )


def test_error_without_a_name_counts_for_instances_without_their_own_error() -> None:
    """A webhook refuses instance 4 and a quota instance 5: `status` has the right error for each.

    The webhook's error names no pod, so it counts for instance 4, which has no error of its own.
    """
    life = web()
    refusing(life, lambda _: WEBHOOK, "web-4")
    refusing(life, forbidden(QUOTA), "web-5")
    life.begin_patch(replicas=6).world.run(45)
    lines = kubectl_tapp(StandIn(life.world), "status", "web").lines
    assert f"instance 4: not created: the API server refused the pod: {WEBHOOK}" in lines
    assert f"instance 5: not created: the API server refused the pod: forbidden: {QUOTA}" in lines


def test_error_is_not_printed_after_a_later_success() -> None:
    """An error from before the creation of a pod is not printed, not even after that pod was
    deleted.

    A new error is printed.
    """
    life = web()
    ends = refusing(life, forbidden(QUOTA), "web-4")
    life.begin_patch(replicas=5).world.run(45)
    ends()
    life.world.run(1000)
    standin = StandIn(life.world)
    said = kubectl_tapp(standin, "why", "web", "4")
    assert said.lines[0] == "instance 4: UpToDate: its pod matches its template"
    assert "quota" not in said.out
    refusing(life, forbidden(PRIORITY), "web-4")
    life.world.delete("Pod", "web-4")
    life.world.run(60)
    said = kubectl_tapp(standin, "why", "web", "4")
    assert "quota" not in said.out
    assert PRIORITY in said.lines[0]


def test_refused_update_is_printed_until_it_succeeds() -> None:
    life = web()

    def frozen(operation: str, obj: Object) -> Object:
        if operation == "UPDATE" and obj["kind"] == "Pod" and name_of(obj) == "web-3":
            raise ForbiddenError('pods "web-3" is forbidden: images are frozen')
        return obj

    life.world.cluster.admission.policies.append(frozen)
    container = {**life.tapp["spec"]["template"]["spec"]["containers"][0], "image": "nginx:9"}
    body = {**life.tapp["spec"]["template"], "spec": {"containers": [container]}}
    life.begin_patch(template=body).world.run(30)
    standin = StandIn(life.world)
    words = "the API server refused this change: forbidden: images are frozen"
    assert words in kubectl_tapp(standin, "status", "web").out
    assert words in kubectl_tapp(standin, "why", "web", "3").out
    life.world.cluster.admission.policies.remove(frozen)
    life.world.run(120)
    assert "frozen" not in kubectl_tapp(standin, "why", "web").out


def test_errors_are_found_in_a_combined_event() -> None:
    """`status` prints the newest error of a quota from an Event that combines similar errors.

    A quota's errors differ in the used amount, so the event recorder combines them.
    """
    life, used = web(), iter(range(10_000))
    refusing(life, lambda name: f'pods "{name}" is forbidden: exceeded quota: pods={next(used)}')
    life.begin_patch(replicas=5).world.run(600)
    events = life.world.list("Event")
    assert any(each["message"].startswith("(combined from similar events): ") for each in events)
    said = kubectl_tapp(StandIn(life.world), "status", "web")
    (line,) = [line for line in said.lines if line.startswith("instance 4: not created: ")]
    newest = max(int(each["message"].rpartition("=")[2]) for each in events)
    assert line.endswith(f"exceeded quota: pods={newest}")


def test_error_of_the_api_server_is_cut_and_has_no_control_characters() -> None:
    life = web()
    refusing(life, forbidden("\x1b]0;owned\x07" + "x" * 10_000))
    life.begin_patch(replicas=5).world.run(45)
    said = kubectl_tapp(StandIn(life.world), "why", "web", "4")
    assert not {"\x1b", "\x07"} & set(said.out)
    assert len(said.lines[0]) < 400


def test_unreachable_service_is_reported_until_it_responds() -> None:
    life = web()
    life.world.hook.fail(10_000, path="/sync")
    life.begin_patch(replicas=5).world.run(45)
    standin = StandIn(life.world)
    assert "note: SyncError " in kubectl_tapp(standin, "status", "web").lines[-1]
    assert "event: SyncError " in kubectl_tapp(standin, "why", "web").lines[-1]
    life.world.hook.heal()
    life.world.run(120)
    for verb in ("status", "why"):
        assert "SyncError" not in kubectl_tapp(standin, verb, "web").out


# --- taken names ----------------------------------------------------------------------------------


def taken(life: Life, kind: Kind, name: str, **metadata: Any) -> None:
    """Creates an object of another owner with the name of a pod or claim; `metadata` has its owner
    and labels.
    """
    spec: dict[str, Any] = {"containers": [{"name": "x", "image": "x"}]}
    if kind is CLAIM:
        spec = claim_template("data")["spec"]
    document = {"apiVersion": "v1", "kind": kind.name, "spec": spec}
    document["metadata"] = {"name": name, "namespace": "default", **metadata}
    life.world.cluster.create(kind, document)


ADOPT = "`kubectl tapp adopt web -n default` adopts it"


@pytest.mark.parametrize(
    ("label", "owner", "whose"),
    [
        (None, None, f"has no owner; {ADOPT}"),
        (None, "StatefulSet", "belongs to StatefulSet shop, so the name is taken"),
        ("old", None, f"was left behind by a deleted TApp web (uid old); {ADOPT}"),
    ],
    ids=["nobody", "other", "orphan"],
)
def test_pod_with_the_same_name_is_reported_with_its_owner(
    label: str | None, owner: str | None, whose: str
) -> None:
    life, metadata = web(), dict[str, Any]()
    if label:
        metadata["labels"] = {"controller-uid": label}
    if owner:
        made = life.world.cluster.create(
            life.world.kinds.find("statefulsets"),
            {"apiVersion": "apps/v1", "kind": owner, "spec": {},
             "metadata": {"name": "shop", "namespace": "default"}},
        )  # fmt: skip
        metadata["ownerReferences"] = [controller_ref(made)]
    taken(life, POD, "web-4", **metadata)
    life.begin_patch(replicas=5).world.run(45)
    standin = StandIn(life.world)
    text = f"instance 4: not created: another pod with the same name exists, and {whose}"
    for verb in ("status", "why"):
        assert text in kubectl_tapp(standin, verb, "web").lines
    said = kubectl_tapp(standin, "wait", "web")
    assert said.code == 4
    assert (
        f"instance 4: not created: another pod with the same name exists, and {whose}" in said.err
    )


def test_pod_without_its_label_is_found() -> None:
    life = web()
    pod = life.world.get("Pod", "web-2")
    life.world.cluster.edit(POD, pod, lambda old: with_meta(old, labels={"app": "web"}))
    life.world.run(45)
    said = kubectl_tapp(StandIn(life.world), "status", "web")
    assert (
        f"instance 2: not created: another pod with the same name exists, and has no owner; {ADOPT}"
        in said.lines
    )


def test_orphaned_claims_are_found_although_their_pods_run() -> None:
    spec = {"replicas": 2, "volumeClaimTemplates": [claim_template("data")]}
    life = Life()
    for id in (0, 1):
        taken(life, CLAIM, f"data-web-{id}", labels={"controller-uid": "old"})
    life.apply(manifest(**spec))
    standin = StandIn(life.world)
    whose = f"was left behind by a deleted TApp web (uid old); {ADOPT}"
    text = "each of instances 0, 1: another claim with the name of its claim data exists, and "
    text += whose
    assert text in kubectl_tapp(standin, "status", "web").lines
    assert text in kubectl_tapp(standin, "why", "web").lines


def test_missing_permission_to_look_for_the_owner_is_reported() -> None:
    life = web()
    taken(life, POD, "web-4")
    life.begin_patch(replicas=5).world.run(45)
    standin = StandIn(life.world)
    standin.forbid("get pods")
    said = kubectl_tapp(standin, "status", "web")
    assert said.err == ""
    assert said.code == 0
    text = (
        "instance 4: not created: another pod with the same name may exist, but you may not read "
        "pods: "
        "no permission"
    )
    assert any(line.startswith(text) for line in said.lines)


def test_lookups_of_missing_pods_are_limited() -> None:
    life = web()
    for id in range(4, 60):
        taken(life, POD, f"web-{id}")
    life.begin_patch(replicas=60).world.run(45)
    standin = StandIn(life.world)
    kubectl_tapp(standin, "status", "web")
    (call,) = [call for call in standin.calls if "--ignore-not-found" in call]
    assert len([word for word in call if word.startswith("web-")]) == 25
    assert "has no owner" in kubectl_tapp(standin, "why", "web", "59").lines[0]


def test_healthy_tapp_needs_no_further_calls() -> None:
    standin = StandIn(web().world)
    kubectl_tapp(standin, "status", "web")
    assert not [call for call in standin.calls if "--ignore-not-found" in call]


def test_watch_prints_an_error_as_soon_as_it_occurs(capsys: pytest.CaptureFixture[str]) -> None:
    life = web()
    refusing(life, forbidden(QUOTA))
    steps = [lambda: life.begin_patch(replicas=6), *20 * [lambda: None]]
    assert watched(life, steps) == 130
    out = capsys.readouterr().out
    assert f"instances 4, 5: not created: the API server refused the pod: forbidden: {QUOTA}" in out
