"""Tests `kubectl tapp adopt`, which makes a TApp the owner of orphaned pods, claims and
revisions.
"""

from typing import Any

import pytest

from tests.builders import claim_template, manifest, template
from tests.plugin.clusters import answering
from tests.plugin.fake_kubectl import Document, StandIn, kubectl_tapp
from tests.scenarios.life import Life

LABEL = "controller-uid"
WEB = manifest(replicas=3, volumeClaimTemplates=[claim_template()])
PODS = ["web-0", "web-1", "web-2"]
CLAIMS = ["data-web-0", "data-web-1", "data-web-2"]


def again(propagation: Any, document: Document = WEB) -> StandIn:
    """Returns a fake kubectl for a TApp that was deleted and created again.

    `propagation` is the propagation policy of the deletion, and `document` is the new TApp.
    """
    life = Life().apply(WEB)
    life.world.delete("tapps", "web", propagation=propagation)
    life.world.settle(allow_errors=True)
    life.world.apply(document)
    life.world.settle(allow_errors=True)
    return StandIn(life.world)


@pytest.fixture
def orphans() -> StandIn:
    """Returns a TApp that was created again after `kubectl delete --cascade=orphan`.

    Its earlier pods have no owner, and their names are taken, so that no instance ever runs.
    """
    return again("Orphan")


def labels(standin: StandIn, kind: str) -> dict[str, str | None]:
    """Returns object name -> value of the label with the UID of its TApp; None without the
    label.
    """
    return {
        each["metadata"]["name"]: each["metadata"].get("labels", {}).get(LABEL)
        for each in standin.world.list(kind)
    }


def uid(standin: StandIn) -> str:
    """Returns the UID of the TApp `web`."""
    return str(standin.world.get("tapps", "web")["metadata"]["uid"])


def relabel(standin: StandIn, name: str, value: str | None) -> None:
    """Sets the label with the TApp's UID on a pod; None removes the label."""
    standin.world.patch("pods", name, {"metadata": {"labels": {LABEL: value}}})
    standin.world.settle(allow_errors=True)


def test_orphans_of_a_deletion_are_adopted(orphans: StandIn) -> None:
    world = orphans.world
    before = {each["metadata"]["uid"] for each in world.list("pods")}
    said = kubectl_tapp(orphans, "adopt", "web", "-y", "--wait")
    assert said.err == ""
    assert said.code == 0
    world.settle()
    assert {each["metadata"]["uid"] for each in world.list("pods")} == before
    assert labels(orphans, "pods") == dict.fromkeys(PODS, uid(orphans))
    assert labels(orphans, "persistentvolumeclaims") == dict.fromkeys(CLAIMS, uid(orphans))
    status = world.get("tapps", "web")["status"]
    assert status["readyReplicas"] == 3
    assert status["replicas"] == 3
    assert "  pod web-N (N: 0-2): was left behind by a deleted TApp web (uid " in said.out
    assert (
        "  pod web-N (N: 0-2) stays unchanged (UpToDate: its pod matches its template)"
        in said.lines
    )
    assert "web: 3 pods and 3 claims adopted" in said.lines


def test_orphaned_claims_are_adopted_and_grow_with_the_others() -> None:
    standin = again("Background")
    assert set(labels(standin, "persistentvolumeclaims").values()) != {uid(standin)}
    said = kubectl_tapp(standin, "adopt", "web", "-y")
    assert said.err == ""
    assert said.code == 0
    assert "web: 3 claims adopted" in said.lines
    standin.world.settle()
    for claim in standin.world.list("persistentvolumeclaims"):
        owners = [each["kind"] for each in claim["metadata"]["ownerReferences"]]
        assert sorted(owners) == ["Namespace", "TApp"]


def restored() -> StandIn:
    """Returns a TApp whose claims come from a backup: they have no owner, and the UID of a deleted
    TApp.
    """
    standin = again("Background")
    for name in CLAIMS:
        metadata = {"ownerReferences": None, "labels": {LABEL: "of-another-cluster"}}
        standin.world.patch("persistentvolumeclaims", name, {"metadata": metadata})
    standin.world.settle(allow_errors=True)
    return standin


def test_adopted_claims_of_a_backup_survive_the_deletion_of_the_tapp() -> None:
    """Adopts claims from a backup, deletes the TApp, and expects that the claims still exist.

    The Namespace becomes a second owner of each claim. Otherwise the garbage collector would delete
    the claims together with the TApp.
    """
    standin = restored()
    said = kubectl_tapp(standin, "adopt", "web", "-y")
    assert said.err == ""
    assert said.code == 0
    told = f"  claims get their Namespace as a second owner: {', '.join(CLAIMS)}"
    assert told in said.lines
    standin.world.settle()
    for claim in standin.world.list("persistentvolumeclaims"):
        owners = [each["kind"] for each in claim["metadata"]["ownerReferences"]]
        assert sorted(owners) == ["Namespace", "TApp"]
    standin.world.delete("tapps", "web")
    standin.world.settle()
    assert not standin.world.list("pods")
    kept = [each["metadata"]["name"] for each in standin.world.list("persistentvolumeclaims")]
    assert kept == CLAIMS


def test_claims_are_not_adopted_if_the_namespace_cannot_be_read() -> None:
    """Claims need the Namespace as an owner, so without permission to read its uid they are not
    adopted.

    Otherwise the claims would be deleted together with the TApp.
    """
    standin = restored()
    standin.forbid("get namespaces")
    said = kubectl_tapp(standin, "adopt", "web", "-y")
    assert "the claim needs its Namespace as an owner, and you may not read Namespaces" in said.out
    assert "web: there is nothing to adopt" in said.lines
    assert set(labels(standin, "persistentvolumeclaims").values()) == {"of-another-cluster"}


def test_removed_label_is_restored() -> None:
    standin = StandIn(Life().apply(WEB).world)
    relabel(standin, "web-1", None)
    said = kubectl_tapp(standin, "adopt", "web", "-y")
    assert "web: 1 pod adopted" in said.lines
    standin.world.settle()
    assert labels(standin, "pods") == dict.fromkeys(PODS, uid(standin))


def test_adopt_writes_only_the_label(orphans: StandIn) -> None:
    before = {each["metadata"]["name"]: each for each in orphans.world.list("pods")}
    kubectl_tapp(orphans, "adopt", "web", "0", "-y")
    after = {each["metadata"]["name"]: each for each in orphans.world.list("pods")}
    assert {name for name in PODS if before[name] != after[name]} == {"web-0"}
    old, new = before["web-0"], after["web-0"]
    assert new["spec"] == old["spec"]
    changed = {"labels", "resourceVersion"}
    same = {key: value for key, value in new["metadata"].items() if key not in changed}
    assert same == {key: value for key, value in old["metadata"].items() if key not in changed}
    assert new["metadata"]["labels"] == old["metadata"]["labels"] | {LABEL: uid(orphans)}


@pytest.mark.parametrize(
    ("arguments", "answer", "code"),
    [(["--dry-run=server"], "", 0), (["--dry-run=client"], "", 0), ([], "n\n", 5)],
    ids=["dry run on the server", "dry run on the client", "answer no"],
)
def test_adopt_shows_its_plan_first(
    orphans: StandIn, arguments: list[str], answer: str, code: int
) -> None:
    before = labels(orphans, "pods")
    said = answering(orphans, answer, "adopt", "web", *arguments)
    assert said.code == code
    assert "To adopt" in said.out
    assert labels(orphans, "pods") == before


def test_objects_with_another_owner_are_named_and_not_adopted() -> None:
    standin = again("Orphan")
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "name": "db",
        "uid": "5",
        "controller": True,
    }
    standin.world.patch("pods", "web-0", {"metadata": {"ownerReferences": [owner]}})
    other = standin.world.apply(manifest("other", replicas=0))
    label = {LABEL: other["metadata"]["uid"]}
    standin.world.patch("pods", "web-1", {"metadata": {"labels": label}})
    said = kubectl_tapp(standin, "adopt", "web", "--dry-run=client")
    assert "Not adopted" in said.lines
    assert (
        "  pod web-0: belongs to StatefulSet db, so the name is taken; only objects without an "
        "owner can be adopted" in said.out
    )
    assert "  pod web-1: has the label of TApp other; that TApp still exists" in said.lines
    assert any(
        line.startswith("  pod web-2: was left behind by a deleted TApp web") for line in said.lines
    )
    assert not any(line.startswith("  pod web-1: belonged") for line in said.lines)


def test_objects_that_would_be_deleted_after_their_adoption_are_not_adopted() -> None:
    """A pod outside `spec.replicas` is not adopted, because Metacontroller would delete the adopted
    pod.
    """
    standin = again("Orphan", {**WEB, "spec": {**WEB["spec"], "replicas": 2}})
    said = kubectl_tapp(standin, "adopt", "web", "-y")
    assert said.err == ""
    assert said.code == 0
    assert "its instance is outside spec.replicas, so the TApp service would delete it" in said.out
    standin.world.settle()
    assert sorted(labels(standin, "pods")) == PODS
    assert labels(standin, "pods")["web-2"] != uid(standin)


def test_plan_says_what_the_service_will_do_with_adopted_objects() -> None:
    other = {**WEB["spec"], "template": template(hostname="x"), "statuses": {"2": "Killed"}}
    standin = again("Orphan", {**WEB, "spec": other})
    said = kubectl_tapp(standin, "adopt", "web", "--dry-run=client")
    assert "Then" in said.lines
    assert any(line.startswith("  pod web-N (N: 2) will be deleted (Killed") for line in said.lines)
    assert any("(TemplateChanged" in line or "(WaitingForBudget" in line for line in said.lines)


def test_adopt_says_which_claims_get_another_class() -> None:
    (claim,) = WEB["spec"]["volumeClaimTemplates"]
    gold = {**claim, "spec": {**claim["spec"], "volumeAttributesClassName": "gold"}}
    standin = again("Orphan", {**WEB, "spec": {**WEB["spec"], "volumeClaimTemplates": [gold]}})
    said = kubectl_tapp(standin, "adopt", "web", "--dry-run=client")
    told = "  claims get the VolumeAttributesClass of their template: "
    (line,) = [line for line in said.lines if line.startswith(told)]
    assert line.removeprefix(told).split(", ") == CLAIMS


def test_pod_that_changes_during_the_adoption_is_read_again(orphans: StandIn) -> None:
    def write() -> None:
        notes = {"metadata": {"annotations": {"seen": "now"}}}
        orphans.world.patch("persistentvolumeclaims", "data-web-0", notes)

    orphans.before.append(write)
    said = kubectl_tapp(orphans, "adopt", "web", "-y")
    assert said.err == ""
    assert said.code == 0
    assert "web: 3 pods and 3 claims adopted" in said.lines


def test_new_pod_with_the_same_name_is_not_adopted(orphans: StandIn) -> None:
    def replaced() -> None:
        found = dict(orphans.world.get("persistentvolumeclaims", "data-web-0"))
        orphans.world.delete("pods", "web-0", grace_seconds=0)
        orphans.world.delete("persistentvolumeclaims", "data-web-0")
        orphans.world.settle(allow_errors=True)
        metadata = {"name": found["metadata"]["name"], "namespace": "default"}
        if not any(
            each["metadata"]["name"] == "data-web-0"
            for each in orphans.world.list("persistentvolumeclaims")
        ):
            orphans.world.apply({**found, "metadata": metadata})

    orphans.before.append(replaced)
    said = kubectl_tapp(orphans, "adopt", "web", "-y")
    assert said.code == 6
    assert "data-web-0 was changed by another client, and was not adopted" in said.err


def test_concurrent_edit_of_the_tapp_stops_the_adoption(orphans: StandIn) -> None:
    def answer() -> str:
        orphans.world.patch("tapps", "web", {"spec": {"replicas": 1}})
        return "y"

    from kubectl_tapp.cluster.session import Session  # noqa: PLC0415

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Session, "interactive", True)
        patched.setattr(Session, "ask", staticmethod(lambda _: answer()))
        said = kubectl_tapp(orphans, "adopt", "web")
    assert said.code == 6
    assert "web changed after the plan was made; nothing was written" in said.err
    assert uid(orphans) not in labels(orphans, "pods").values()


def test_adopt_says_that_there_is_nothing_to_adopt() -> None:
    standin = StandIn(Life().apply(WEB).world)
    said = kubectl_tapp(standin, "adopt", "web", "-y")
    assert said.code == 0
    assert said.lines == ["web: there is nothing to adopt"]
    assert not standin.writes


def of_statefulset(labels: dict[str, str] | None = None, selector: str = "") -> StandIn:
    """Returns a TApp and pods that a StatefulSet has left behind, with the StatefulSet's labels.

    `labels` are added to the template. If `selector` is the key of a label, a Service selects pod
    `web-1` by this label.
    """
    document = manifest(replicas=3, template=template())
    if labels is not None:
        metadata = document["spec"]["template"].setdefault("metadata", {})
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
    standin = again("Orphan", document)
    for id in range(3):
        own = {POD_NAME: f"web-{id}", POD_INDEX: str(id)}
        standin.world.patch("pods", f"web-{id}", {"metadata": {"labels": own}})
    if selector:
        spec = {"selector": {selector: "web-1"}, "ports": [{"port": 80}]}
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "first"}}
        standin.world.apply({**service, "spec": spec})
    return standin


POD_NAME = "statefulset.kubernetes.io/pod-name"
POD_INDEX = "apps.kubernetes.io/pod-index"


def test_plan_names_labels_of_a_statefulset_that_new_pods_will_lack() -> None:
    """The plan of an adoption warns of a label that the pods have and the template lacks.

    Services for single pods would lose their pods with the next replacement, perhaps days later.
    """
    said = kubectl_tapp(of_statefulset(), "adopt", "web", "--dry-run=client")
    assert said.err == ""
    assert said.code == 0
    lacks = f"instances 0-2: the pods have the label {POD_NAME}, which their template lacks"
    assert lacks in said.out
    assert f'add it to the labels of the template: {POD_NAME}: "$(tapp.name)"' in said.out
    assert POD_INDEX not in said.out  # The service sets this label on every pod.
    assert "each Service that selects by the label loses these pods" in said.out


def test_plan_names_services_that_select_pods_by_such_a_label() -> None:
    said = kubectl_tapp(of_statefulset(selector=POD_NAME), "adopt", "web", "--dry-run=client")
    assert "lack the label, and the Service first loses these pods" in said.out


def test_missing_labels_are_reported_until_the_template_has_them() -> None:
    """After the adoption, `status`, `why` and `plan` report labels that the template lacks.

    An update or a drain may replace the pods long after the move.
    """
    standin = of_statefulset()
    kubectl_tapp(standin, "adopt", "web", "-y", "--wait")
    lacks = f"instances 0-2: the pods have the label {POD_NAME}, which their template lacks"
    for command in (["status", "web"], ["why", "web"], ["plan", "web", "--replicas", "4"]):
        assert lacks in " ".join(kubectl_tapp(standin, *command).out.split())
    metadata = {"labels": {**template()["metadata"]["labels"], POD_NAME: "$(tapp.name)"}}
    standin.world.patch("tapps", "web", {"spec": {"template": {"metadata": metadata}}})
    standin.world.settle()
    assert POD_NAME not in kubectl_tapp(standin, "status", "web").out


def test_label_of_the_template_is_not_lost() -> None:
    standin = of_statefulset({POD_NAME: "$(tapp.name)"})
    assert "Later" not in kubectl_tapp(standin, "adopt", "web", "--dry-run=client").out


def with_service(standin: StandIn, name: str, **selector: str) -> StandIn:
    """Creates a Service with this selector in the cluster of `standin`, and returns `standin`."""
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}}
    standin.world.apply({**service, "spec": {"selector": selector, "ports": [{"port": 80}]}})
    return standin


def adoption_plan(standin: StandIn) -> str:
    """Returns the plan of the adoption on one line."""
    return " ".join(kubectl_tapp(standin, "adopt", "web", "--dry-run=client").out.split())


@pytest.mark.parametrize("key", ["controller-revision-hash", "example.com/role"])
def test_plan_names_services_that_select_by_a_label_that_new_pods_will_lack(key: str) -> None:
    """A Service may select by any label that the StatefulSet or a person has set on its pods."""
    standin = with_service(of_statefulset(), "new", **{key: "web-7"})
    assert "Service new" not in adoption_plan(standin)
    for id in (0, 1):
        standin.world.patch("pods", f"web-{id}", {"metadata": {"labels": {key: "web-7"}}})
    said = (
        f"Service new selects by {key}. The template of instances 0, 1 lacks that, so the Service"
    )
    assert said in adoption_plan(standin)


def test_plan_does_not_name_services_of_other_pods() -> None:
    """A Service for a single pod of another StatefulSet loses no pod."""
    standin = with_service(of_statefulset(selector=POD_NAME), "other", **{POD_NAME: "other-0"})
    assert "the Service first loses these pods" in adoption_plan(standin)


def test_plan_does_not_name_services_whose_labels_new_pods_have() -> None:
    own = {**template()["metadata"]["labels"], POD_INDEX: "1"}
    standin = with_service(of_statefulset(labels={POD_NAME: "$(tapp.name)"}), "all", **own)
    assert "Later" not in adoption_plan(standin)
