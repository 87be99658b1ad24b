"""Tests `python -m migration`: its writes, its refusals and its messages."""

from collections.abc import Sequence

import pytest

from migration.__main__ import main
from migration.kubectl import Finished
from migration.moves import OLD_READINESS_GATE, POD_NAME, plan_move
from tests.migration.fake_kubectl import (
    CONTROLLED,
    LABELLED,
    NAMESPACE,
    NAMESPACE_UID,
    OF_ANOTHER,
    OWNED,
    TAPP_UID,
    FakeKubectl,
    Json,
    deployment,
    old_app,
    tapp,
    thing,
)


def play(kubectl: FakeKubectl, *arguments: str) -> tuple[int, str]:
    """Runs the migration in the namespace `shop`; returns its exit code and its output."""
    lines: list[str] = []
    code = main(["-n", "shop", *arguments], kubectl, lines.append)
    return code, "\n".join(lines)


def test_without_apply_changes_are_printed_and_not_made() -> None:
    kubectl = old_app()
    code, text = play(kubectl)
    assert code == 0
    assert not kubectl.patched
    for name in ("pod shop/web-0", "pod shop/web-1", "claim shop/data-web-0"):
        assert f"{name}: add label controller-uid={TAPP_UID}" in text
    assert "Dry run: 4 changes" in text
    assert "2 claims would be deleted together with their TApp" in text


def test_apply_labels_the_controlled_objects_and_a_second_run_has_nothing_to_do() -> None:
    kubectl = old_app()
    code, text = play(kubectl, "--apply")
    assert code == 0
    assert "4 of 4 changes made" in text
    for name in ("pods", "persistentvolumeclaims"):
        for item in kubectl.objects[name]:
            assert item["metadata"]["labels"] == {"app": "web", **LABELLED}
    written = len(kubectl.patched)
    assert play(kubectl, "--apply")[0] == 0
    assert len(kubectl.patched) == written


def test_keep_claims_adds_label_and_owner_in_one_guarded_patch() -> None:
    kubectl = old_app()
    code, text = play(kubectl, "--apply", "--keep-claims")
    assert code == 0
    assert "only owner" not in text
    patches = [patch for resource, _, patch in kubectl.patched if resource != "pods"]
    assert len(patches) == 2
    for patch in patches:
        assert patch["metadata"]["labels"] == LABELLED
        assert patch["metadata"]["resourceVersion"] == "1"
        assert patch["metadata"]["ownerReferences"] == [*CONTROLLED, NAMESPACE]
    assert play(kubectl, "--keep-claims")[1].count("0 changes to make, 4 done already") == 1


def test_keep_claims_adds_the_owner_to_claims_that_have_the_label() -> None:
    kubectl = old_app(claims=[thing("data-web-0", CONTROLLED, LABELLED)])
    assert play(kubectl, "--apply", "--keep-claims")[0] == 0
    (patch,) = [patch for resource, _, patch in kubectl.patched if resource != "pods"]
    assert "labels" not in patch["metadata"]
    assert patch["metadata"]["ownerReferences"] == [*CONTROLLED, NAMESPACE]


def test_owner_that_a_claim_gets_meanwhile_is_kept() -> None:
    """A claim gets another owner during the migration: the claim keeps it.

    The first patch conflicts, and the second one has the owners of the newer claim.
    """
    kubectl = old_app(pods=[], claims=[thing("data-web-0", CONTROLLED)])
    backup = {"apiVersion": "v1", "kind": "ConfigMap", "name": "backup", "uid": "b"}

    def meddling(command: Sequence[str]) -> Finished:
        if "patch" in command and not kubectl.patched:
            meta = kubectl.objects["persistentvolumeclaims"][0]["metadata"]
            if meta["resourceVersion"] == "1":
                meta.update(resourceVersion="7", ownerReferences=[*CONTROLLED, backup])
        return kubectl(command)

    lines: list[str] = []
    arguments = ["-n", "shop", "--apply", "--keep-claims"]
    assert main(arguments, meddling, lines.append) == 0
    (claim,) = kubectl.objects["persistentvolumeclaims"]
    assert claim["metadata"]["ownerReferences"] == [*CONTROLLED, backup, NAMESPACE]


STRANGERS = {
    "a pod of another controller has an instance's name": (
        thing("web-1", OF_ANOTHER),
        "but ReplicaSet other (uid other-uid) owns it",
    ),
    "a pod that was let go of has an instance's name": (
        thing("web-1"),
        f"kubectl label pod web-1 -n shop controller-uid={TAPP_UID}",
    ),
    "a pod carries the label with another uid": (
        thing("web-1", CONTROLLED, {"controller-uid": "x"}),
        "has the label controller-uid=x",
    ),
}


@pytest.mark.parametrize(("pod", "said"), STRANGERS.values(), ids=STRANGERS)
def test_pod_in_the_way_is_a_problem_and_is_not_patched(pod: Json, said: str) -> None:
    kubectl = old_app(pods=[thing("web-0", CONTROLLED), pod])
    code, text = play(kubectl, "--apply")
    assert code == 1
    assert "PROBLEM: pod shop/web-1" in text
    assert said in text
    assert "1 problem (see PROBLEM above)" in text
    assert [name for resource, name, _ in kubectl.patched if resource == "pods"] == ["web-0"]


HARMLESS = {
    "beyond replicas": thing("web-2", OF_ANOTHER),
    "a number with a leading zero": thing("web-01", OF_ANOTHER),
    "another app's name": thing("website-1", OF_ANOTHER),
    "not a number": thing("web-x"),
    "labelled, and about to be adopted": thing("web-1", labels=LABELLED),
}


@pytest.mark.parametrize("pod", HARMLESS.values(), ids=HARMLESS)
def test_pod_whose_name_no_instance_needs_is_not_in_the_way(pod: Json) -> None:
    move = plan_move(tapp(), [pod], [], None)
    assert not move.in_the_way
    assert not move.changes


def test_claim_with_the_tapp_as_owner_but_not_controller_is_a_problem() -> None:
    move = plan_move(tapp(), [], [thing("data-web-0", OWNED)], NAMESPACE_UID)
    assert "not as its controller" in move.in_the_way[0]
    assert not move.changes


def test_tapp_in_deletion_is_not_moved() -> None:
    leaving = tapp(deletionTimestamp="2026-01-01T00:00:00Z")
    move = plan_move(leaving, [thing("web-0", CONTROLLED)], [], None)
    assert not move.changes
    assert move.warnings == ["the TApp is being deleted, so nothing is changed"]


def gated(status: str, phase: str = "Running") -> Json:
    """Returns a pod whose readiness gate of the old controller has this status."""
    condition = {"type": OLD_READINESS_GATE, "status": status}
    return thing(
        "web-0",
        CONTROLLED,
        spec={"readinessGates": [{"conditionType": OLD_READINESS_GATE}]},
        status={"phase": phase, "conditions": [condition]},
    )


@pytest.mark.parametrize(
    ("pod", "warned"),
    [
        pytest.param(gated("True"), False, id="open"),
        pytest.param(gated("False"), True, id="closed"),
        pytest.param(gated("False", "Succeeded"), False, id="closed for good"),
        pytest.param(thing("web-0", CONTROLLED), False, id="no gate"),
    ],
)
def test_warning_names_a_pod_that_waits_for_the_gate_of_the_old_controller(
    pod: Json, warned: bool
) -> None:
    warnings = plan_move(tapp(), [pod], [], None).warnings
    assert [OLD_READINESS_GATE in text for text in warnings] == [True] * warned


def test_warning_names_labels_of_a_statefulset_that_the_template_lacks() -> None:
    pod = thing("web-0", CONTROLLED, {**LABELLED, POD_NAME: "web-0"})
    (warning,) = plan_move(tapp(), [pod], [], None).warnings
    assert f"pods web-0 have the label {POD_NAME}" in warning
    labelled = tapp()
    labelled["spec"] = {"template": {"metadata": {"labels": {POD_NAME: "$(tapp.name)"}}}}
    assert plan_move(labelled, [pod], [], None).warnings == []


def test_suggested_commands_have_the_options_of_the_cluster() -> None:
    pod = thing("web-0", CONTROLLED, {"controller-uid": "another"})
    (command,) = plan_move(tapp(), [pod], [], None, " --context=c").in_the_way
    assert command.endswith(" --context=c")


def test_failed_change_stops_no_other_change_and_is_counted() -> None:
    kubectl = old_app()
    kubectl.fail = [("patch pods web-0", "Error from server (InternalError): etcd is unwell")]
    code, text = play(kubectl, "--apply")
    assert code == 1
    assert "pod shop/web-0: FAILED: kubectl" in text
    assert "etcd is unwell" in text
    assert "3 of 4 changes made" in text
    assert "1 failure: run the command again" in text
    assert play(kubectl, "--apply")[0] == 0


def test_missing_pod_is_not_a_failure() -> None:
    kubectl = old_app()
    kubectl.fail = [("patch pods web-0", 'Error from server (NotFound): pods "web-0" not found')]
    code, text = play(kubectl, "--apply")
    assert code == 0
    assert "pod shop/web-0: does not exist any more" in text


def test_patch_of_a_pod_has_its_uid() -> None:
    """Compares the patches of pods: each has the uid, so that a new pod of the same name is not
    patched.
    """
    kubectl = old_app()
    play(kubectl, "--apply")
    for resource, name, patch in kubectl.patched:
        if resource == "pods":
            assert patch["metadata"]["uid"] == f"{name}-uid"


REFUSALS = {
    "the old controller runs": (
        {"deployments.apps": [deployment(1)]},
        "kubectl scale deployment tapp-controller -n kube-system --replicas=0",
    ),
    "the old controller is about to run": (
        {"deployments.apps": [deployment(0, wanted=1)]},
        "has 0 of 1 replicas ready",
    ),
    "Metacontroller is in charge already": (
        {"compositecontrollers.metacontroller.k8s.io": [thing("tapp-controller")]},
        "kubectl delete compositecontroller tapp-controller",
    ),
}


@pytest.mark.parametrize(("objects", "said"), REFUSALS.values(), ids=REFUSALS)
def test_apply_is_refused_for_a_problem_unless_forced(
    objects: dict[str, list[Json]], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kubectl = old_app(**objects)
    assert play(kubectl)[0] == 0
    assert play(kubectl, "--apply")[0] == 2
    assert not kubectl.patched
    assert said in capsys.readouterr().err
    code, text = play(kubectl, "--apply", "--force")
    assert code == 0
    assert said in text
    assert kubectl.patched


NOTHING_TO_DO: dict[str, dict[str, list[Json]]] = {
    "all is labelled": {
        "pods": [thing(f"web-{i}", CONTROLLED, LABELLED) for i in range(2)],
        "claims": [],
    },
    "there is no TApp": {"tapps": []},
}


@pytest.mark.parametrize("nothing", NOTHING_TO_DO.values(), ids=NOTHING_TO_DO)
@pytest.mark.parametrize(("objects", "said"), REFUSALS.values(), ids=REFUSALS)
def test_apply_is_refused_for_a_problem_even_without_changes(
    objects: dict[str, list[Json]],
    said: str,
    nothing: dict[str, list[Json]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    kubectl = old_app(**nothing, **objects)
    assert play(kubectl, "--apply")[0] == 2
    assert said in capsys.readouterr().err
    assert play(old_app(**nothing), "--apply")[0] == 0


def test_dry_run_after_the_move_does_not_warn_of_the_composite_controller() -> None:
    composite = {"compositecontrollers.metacontroller.k8s.io": [thing("tapp-controller")]}
    code, text = play(old_app(**NOTHING_TO_DO["all is labelled"], **composite))
    assert code == 0
    assert "CompositeController 'tapp-controller' exists" not in text


def test_move_of_one_namespace_warns_that_all_tapps_are_taken_over() -> None:
    sentence = "The CompositeController takes over every TApp of the cluster"
    assert sentence in play(old_app())[1]
    lines: list[str] = []
    assert main(["-A"], old_app(), lines.append) == 0
    assert sentence not in "\n".join(lines)


def test_stopped_old_controller_is_not_a_problem() -> None:
    assert play(old_app(**{"deployments.apps": [deployment(0)]}), "--apply")[0] == 0


def test_warning_names_the_old_admission_webhook() -> None:
    """The old controller's admission webhook exists: a warning has the command that deletes it.

    The webhook would refuse every write of a TApp.
    """
    hooks = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    _, text = play(old_app(**{hooks: [thing("tapp-admission")]}))
    assert "kubectl delete validatingwebhookconfiguration tapp-admission" in text


def test_without_cluster_wide_rights_only_the_usual_namespace_is_checked() -> None:
    kubectl = old_app(**{"deployments.apps": [deployment(1)]})
    kubectl.forbidden = [
        "deployments.apps --all-namespaces",
        "get compositecontrollers",
        "get validatingwebhookconfigurations",
    ]
    code, text = play(kubectl)
    assert code == 0
    assert "you may not list Deployments in all namespaces: make sure" in text
    assert "kube-system/tapp-controller has 1 of 1 replicas ready" in text
    kubectl.forbidden.append("deployments.apps --namespace=kube-system")
    code, text = play(kubectl, "--apply")
    assert code == 0
    assert "(and not at all in kube-system)" in text


def test_namespace_that_cannot_be_read_is_a_failure() -> None:
    kubectl = old_app()
    kubectl.forbidden = ["get pods"]
    code, text = play(kubectl, "--apply")
    assert code == 1
    assert "FAILED: namespace shop" in text
    assert not kubectl.patched


def test_only_the_named_tapps_are_moved(capsys: pytest.CaptureFixture[str]) -> None:
    kubectl = old_app(tapps=[tapp(), tapp("db", uid="db-uid")])
    assert "db" not in play(kubectl, "web")[1]
    assert play(kubectl, "web", "nope")[0] == 2
    assert "no TApp nope in shop" in capsys.readouterr().err


def test_missing_tapps_and_a_missing_crd_have_different_messages(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = play(FakeKubectl(tapps=[]))
    assert code == 0
    assert "No TApp found" in text
    kubectl = old_app()
    kubectl.fail = [("get tapps", 'error: the server doesn\'t have a resource type "tapps"')]
    assert play(kubectl)[0] == 2
    assert "the cluster has no CustomResourceDefinition of TApps" in capsys.readouterr().err
