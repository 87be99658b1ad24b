"""Claims that follow the VolumeAttributesClass of their template, on a real API server.

The provisioner plays the storage driver: it makes the changes in the API that external-resizer
would make.
"""

from __future__ import annotations

import pytest

from .app import App, each, template
from .claims import MOUNTED, claim_template, stored
from .kube import Json, Kube, KubeError
from .volumes import CSI_CLASS, REFUSED, attributes_class

pytestmark = pytest.mark.e2e
SILVER, GOLD = "e2e-silver", "e2e-gold"


@pytest.fixture(autouse=True)
def attributes_classes(kube: Kube) -> None:
    """Creates the classes of the tests in the cluster."""
    kube.apply(CSI_CLASS)
    for name in (SILVER, GOLD, REFUSED):
        kube.apply(attributes_class(name))


def of_class(name: str | None, size: str = "1Gi") -> list[Json]:
    """Returns the claim templates of a TApp with this VolumeAttributesClass, or without one."""
    made = claim_template(size, CSI_CLASS["metadata"]["name"])
    made["spec"] |= {"volumeAttributesClassName": name} if name else {}
    return [made]


def requested(app: App) -> list[str | None]:
    """Returns the class that each claim requests, sorted by the name of the claim."""
    return [claim["spec"].get("volumeAttributesClassName") for claim in _claims(app)]


def current(app: App) -> list[str | None]:
    """Returns the class that each volume has, sorted by the name of the claim."""
    return [claim["status"].get("currentVolumeAttributesClassName") for claim in _claims(app)]


def _claims(app: App) -> list[Json]:
    listed = app.kube.list_all("v1", "persistentvolumeclaims", app.namespace)
    return sorted(listed, key=lambda claim: str(claim["metadata"]["name"]))


@pytest.mark.parametrize("replicas", [1, 3, 12])
def test_volumes_get_another_class_under_running_pods(app: App, replicas: int) -> None:
    app.apply(stored(replicas=replicas, volumeClaimTemplates=of_class(SILVER))).settle()
    app.until(lambda: current(app) == [SILVER] * replicas, "the volumes have their first class")
    app.settle()
    born = app.uids()
    app.news()
    app.patch(volumeClaimTemplates=of_class(GOLD))
    app.until(lambda: current(app) == [GOLD] * replicas, "the volumes have the new class")
    app.until(lambda: app.condition("ClaimsBeingModified") == "", "no change is reported")
    assert app.wrote(*each("update Claim", "data-web", *range(replicas)))
    assert app.uids() == born
    assert app.idle()


def test_claim_gets_more_storage_and_another_class_in_one_write(app: App) -> None:
    app.apply(stored(volumeClaimTemplates=of_class(SILVER))).settle()
    app.until(lambda: current(app) == [SILVER] * 2, "the volumes have their first class")
    app.settle()
    app.news()
    app.patch(volumeClaimTemplates=of_class(GOLD, "2Gi"))
    app.until(lambda: current(app) == [GOLD] * 2, "the volumes have the new class")
    sizes = [claim["spec"]["resources"]["requests"]["storage"] for claim in _claims(app)]
    assert sizes == ["2Gi", "2Gi"]
    assert app.wrote(*each("update Claim", "data-web", 0, 1))


def test_refused_class_is_reported_and_can_be_taken_back(app: App) -> None:
    app.apply(stored(volumeClaimTemplates=of_class(SILVER))).settle()
    app.until(lambda: current(app) == [SILVER] * 2, "the volumes have their first class")
    app.patch(volumeClaimTemplates=of_class(REFUSED))
    app.until(lambda: "Infeasible" in app.condition("ClaimsNotModified"), "the refusal is reported")
    assert f"VolumeAttributesClass '{REFUSED}'" in app.condition("ClaimsNotModified")
    assert app.condition("Degraded").startswith("True")
    app.patch(volumeClaimTemplates=of_class(SILVER))
    app.until(lambda: requested(app) == [SILVER] * 2, "the claims request the old class again")
    app.until(lambda: app.condition("ClaimsNotModified") == "", "nothing is reported")


def test_class_that_does_not_exist_is_reported_as_pending(app: App) -> None:
    app.apply(stored(volumeClaimTemplates=of_class(SILVER))).settle()
    app.until(lambda: current(app) == [SILVER] * 2, "the volumes have their first class")
    app.patch(volumeClaimTemplates=of_class(f"missing-{app.namespace}"))
    app.until(
        lambda: (
            "check that this VolumeAttributesClass exists" in app.condition("ClaimsBeingModified")
        ),
        "the missing class is reported",
    )
    assert app.condition("Degraded").startswith("False")


def test_class_is_removed_only_while_no_volume_has_it(app: App) -> None:
    """The simulator must refuse with the words of the real API server."""
    app.apply(stored(volumeClaimTemplates=of_class(None))).settle()
    app.patch(volumeClaimTemplates=of_class(REFUSED))
    app.until(lambda: "Infeasible" in app.condition("ClaimsNotModified"), "the refusal is reported")
    app.patch(volumeClaimTemplates=of_class(None))
    app.until(lambda: requested(app) == [None] * 2, "the claims request no class")
    app.patch(volumeClaimTemplates=of_class(GOLD))
    app.until(lambda: current(app) == [GOLD] * 2, "the volumes have a class")
    app.settle()
    app.news()
    app.patch(volumeClaimTemplates=of_class(None)).settle()
    assert app.idle()
    assert requested(app) == [GOLD] * 2
    path = app.kube.path_of(_claims(app)[0])
    for value, word in ((None, "nil"), ("", "empty string")):
        with pytest.raises(KubeError) as refusal:
            app.kube.patch(path, {"spec": {"volumeAttributesClassName": value}})
        assert (
            f"update to {word} is forbidden when status.currentVolumeAttributesClassName is not nil"
        ) in str(refusal.value)


def test_claims_of_kept_instances_keep_their_class(app: App) -> None:
    app.apply(stored(replicas=3, volumeClaimTemplates=of_class(SILVER))).settle()
    app.until(lambda: current(app) == [SILVER] * 3, "the volumes have their first class")
    app.settle()
    newer = template("app:2", containers=[{**MOUNTED, "image": "app:2"}])
    app.patch(template=newer, volumeClaimTemplates=of_class(GOLD), updateStrategy={"partition": 2})
    app.until(lambda: current(app) == [GOLD, SILVER, SILVER], "only instance 0 follows")
    app.settle()
    assert app.idle()
    app.patch(updateStrategy={"partition": None})
    app.until(lambda: current(app) == [GOLD] * 3, "all instances follow")
