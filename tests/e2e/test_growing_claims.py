"""Claims that grow, on a real API server whose admission and validation decide.

No driver expands the volumes. The provisioner makes the changes in the API that a driver would
make.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from .app import App, each, template
from .claims import MOUNTED, NAMES, claim_template, owners, stored
from .kube import Json, Kube, KubeError, documents
from .metacontroller import SHIPPED, Controller
from .proxy import HookProxy
from .volumes import STORAGE_CLASS

pytestmark = pytest.mark.e2e
LAST_APPLIED = "metacontroller.k8s.io/last-applied-configuration"
REGISTRATION = documents(SHIPPED[0])[0]


@pytest.fixture
def fixed(kube: Kube, namespace: str) -> Iterator[str]:
    """Yields the name of a storage class whose volumes cannot grow."""
    name = f"{STORAGE_CLASS['metadata']['name']}-{namespace}"
    made = {**STORAGE_CLASS, "metadata": {"name": name}, "allowVolumeExpansion": False}
    kube.apply(made)
    yield name
    kube.delete("storage.k8s.io/v1", "storageclasses", None, name)


def resize(app: App, size: str, name: str | None = None) -> App:
    """Sets another size in the spec."""
    return app.patch(volumeClaimTemplates=[claim_template(size, name)])


def claims(app: App) -> dict[str, Json]:
    """Returns the claims by name."""
    listed = app.kube.list_all("v1", "persistentvolumeclaims", app.namespace)
    return {claim["metadata"]["name"]: claim for claim in listed}


def sizes(app: App) -> list[str]:
    """Returns the requested size of each claim, sorted by name."""
    found = claims(app)
    return [found[name]["spec"]["resources"]["requests"]["storage"] for name in sorted(found)]


def capacities(app: App) -> list[str]:
    """Returns the size of each volume, sorted by the claim's name."""
    found = claims(app)
    return [found[name]["status"]["capacity"]["storage"] for name in sorted(found)]


def test_volumes_grow_under_running_pods(app: App) -> None:
    app.apply(stored()).settle()
    born, kept = app.uids(), app.claims()
    before = claims(app)
    app.news()
    resize(app, "2Gi").settle()
    app.until(lambda: sizes(app) == ["2Gi", "2Gi"], "the claims request more")
    app.until(lambda: capacities(app) == ["2Gi", "2Gi"], "the volumes have grown")
    assert app.wrote(*each("update Claim", "data-web", 0, 1))
    assert app.uids() == born
    assert app.claims() == kept
    for name, claim in claims(app).items():
        was = copy.deepcopy(before[name]["spec"])
        was["resources"]["requests"]["storage"] = "2Gi"
        assert claim["spec"] == was
        assert owners(app, name) == ["Namespace", "TApp"]
    assert app.idle()


def test_claims_do_not_grow_until_their_storage_class_allows_it(app: App, fixed: str) -> None:
    app.apply(stored(volumeClaimTemplates=[claim_template("1Gi", fixed)])).settle()
    app.news()
    resize(app, "2Gi", fixed)
    app.until(lambda: app.condition("ClaimsNotGrown") != "", "ClaimsNotGrown is reported")
    assert f"StorageClass '{fixed}' does not let volumes grow" in app.condition("ClaimsNotGrown")
    assert app.idle()
    app.kube.patch(
        app.kube.path("storage.k8s.io/v1", "storageclasses", None, fixed),
        {"allowVolumeExpansion": True},
    )
    app.until(lambda: sizes(app) == ["2Gi", "2Gi"], "the claims grow after the change of the class")
    app.until(lambda: app.condition("ClaimsNotGrown") == "", "ClaimsNotGrown is gone")
    assert app.wrote(*each("update Claim", "data-web", 0, 1))


def test_quota_delays_a_growing_claim_and_nothing_else(app: App) -> None:
    """Metacontroller retries the refused claim, while status and other instances change."""
    app.apply(stored()).settle()
    path = app.quota("storage", **{"requests.storage": "4Gi"})
    app.news()
    resize(app, "3Gi")
    app.until(lambda: sorted(sizes(app)) == ["1Gi", "3Gi"], "one claim grows")
    app.patch(template=template("app:2", containers=[{**MOUNTED, "image": "app:2"}]))
    app.until(lambda: app.images() == "app:2 app:2", "the update continues")
    app.kube.patch(path, {"spec": {"hard": {"requests.storage": "6Gi"}}})
    app.trigger_sync()
    app.until(lambda: sizes(app) == ["3Gi", "3Gi"], "the other claim grows")
    app.settle()
    assert {write.what for write in app.news(refused=(403, 404, 409)) if not write.accepted} <= {
        "update persistentvolumeclaims",
        "update pods",
        "update tapps/status",
    }


def test_api_server_refuses_changes_of_claims_that_the_service_never_requests(
    app: App, fixed: str
) -> None:
    """The simulator must use the messages of the real admission and validation."""
    app.apply(stored(volumeClaimTemplates=[claim_template("1Gi", fixed)])).settle()
    claim = claims(app)["data-web-0"]
    path = app.kube.path_of(claim)

    # An older service, which returns claims without their spec, cannot damage a claim.
    bare = {key: claim["metadata"][key] for key in ("name", "namespace", "resourceVersion")}
    with pytest.raises(KubeError, match="422"):
        app.kube.replace({**claim, "metadata": bare, "spec": {}})

    def refusal_of(**spec: Json) -> str:
        with pytest.raises(KubeError) as refusal:
            app.kube.patch(path, {"spec": spec})
        return f"{refusal.value.status} {refusal.value}"

    more = {"requests": {"storage": "2Gi"}}
    grown = refusal_of(resources=more)
    assert "403" in grown
    assert (
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
        "pvc must support resize"
    ) in grown
    assert "spec is immutable after creation" in refusal_of(
        resources={"limits": {"storage": "1Gi"}}
    )
    assert "field can not be less than status.capacity" in refusal_of(
        resources={"requests": {"storage": "512Mi"}}
    )
    unbound = {key: claim[key] for key in ("apiVersion", "kind")}
    unbound |= claim_template("1Gi", "nobody")
    unbound["metadata"] = {"name": "unbound", "namespace": app.namespace}
    path = app.kube.path_of(app.kube.create(unbound))
    assert "spec is immutable after creation" in refusal_of(resources=more)


def test_registration_that_allows_growth_writes_no_existing_claim_of_metacontroller(
    app: App, tapps: Controller, hook_proxy: HookProxy
) -> None:
    """Claims that Metacontroller did not create get one annotation."""
    older = copy.deepcopy(REGISTRATION)
    for child in older["spec"]["childResources"]:
        if child["resource"] == "persistentvolumeclaims":
            child["updateStrategy"]["method"] = "OnDelete"
    _register(tapps, older, hook_proxy)
    try:
        app.apply(stored()).settle()
        resize(app, "2Gi").settle()
        app.until(lambda: sizes(app) == ["1Gi", "1Gi"], "no claim grows")
        resize(app, "1Gi").settle()
        adopted = claims(app)["data-web-1"]
        app.kube.patch(
            app.kube.path_of(adopted), {"metadata": {"annotations": {LAST_APPLIED: None}}}
        )
        app.quiet()
        app.news()
    finally:
        _register(tapps, REGISTRATION, hook_proxy)
    before = claims(app)
    app.trigger_sync()
    app.quiet()
    assert app.wrote("update Claim data-web-1")
    after = claims(app)
    assert after["data-web-0"] == before["data-web-0"]
    assert {key: item for key, item in after["data-web-1"].items() if key != "metadata"} == {
        key: item for key, item in before["data-web-1"].items() if key != "metadata"
    }
    assert app.idle()
    resize(app, "2Gi").settle()
    app.until(lambda: sizes(app) == ["2Gi", "2Gi"], "both claims grow")
    assert app.wrote(*each("update Claim", "data-web", 0, 1))
    assert [owners(app, name) for name in NAMES] == [["Namespace", "TApp"]] * 2
    assert app.idle()


def _register(controller: Controller, manifest: Json, proxy: HookProxy) -> None:
    if not controller.real:
        controller.unregister(manifest["metadata"]["name"])
    controller.register(manifest, proxy.url)
