"""Tests the install manifests: kustomize builds them, Kubernetes accepts them, and their names
match.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from crds.kubernetes_schema import KUBERNETES
from hooks.app import create_app
from hooks.service.settings import Settings
from tapp.words import vocabulary
from tapp.words.kinds import PLAIN
from tests.contract.installed_manifests import (
    COMPONENTS,
    DECORATOR,
    HOOKS,
    built_in,
    environment,
    webhooks,
)
from tests.contract.manifests import INSTALL, Document, build, composed, only, pod_spec

OVERLAYS = ["base", "overlays/bearer-token", "overlays/kind", "overlays/tls"]
"""Kustomizations that can be built without a network."""
EVENTS, RESIZE = "events", "resize"

STATE_METRICS = INSTALL / "components" / "monitoring" / "kube-state-metrics.yaml"
"""A file for kube-state-metrics, not for the API server."""
FOR_KUSTOMIZE = INSTALL / "namespace" / "replacements.yaml"
FILES = sorted(set(INSTALL.rglob("*.yaml")) - {STATE_METRICS, FOR_KUSTOMIZE})


@pytest.fixture(params=[*OVERLAYS, "components"])
def installed(request: pytest.FixtureRequest) -> list[Document]:
    """Returns the objects of each overlay in turn, and of the base with all components."""
    if request.param == "components":
        return composed(*COMPONENTS, stub=False)
    return build(INSTALL / request.param)


# --- every file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(INSTALL)) for file in FILES])
def test_each_file_is_valid_for_its_kind(file: Path) -> None:
    """Validates each object strictly; patches must be lists of operations, or name their target."""
    for document in yaml.load_all(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
        if isinstance(document, list):
            assert all({"op", "path"} <= set(operation) for operation in document)
        elif document["apiVersion"].startswith("kustomize.config.k8s.io/"):
            assert document["kind"] in {"Kustomization", "Component"}
        else:
            assert document["metadata"]["name"]
            if built_in(document) and file not in PATCH_FILES:
                kubernetes_validate.validate(document, KUBERNETES, strict=True)


def kustomizations() -> Iterator[tuple[Path, Document]]:
    """Yields each kustomization file with its content."""
    for file in sorted(INSTALL.rglob("kustomization.yaml")):
        yield file, yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)


PATCH_FILES = {
    file.parent / patch["path"]
    for file, content in kustomizations()
    for patch in content.get("patches", ())
    if "path" in patch
}


def test_every_file_is_used_and_every_reference_exists() -> None:
    used = {file for file, _ in kustomizations()} | PATCH_FILES
    for file, content in kustomizations():
        parts = [*content.get("resources", ()), *content.get("components", ())]
        for map_ in content.get("configMapGenerator", ()):
            parts += [source.rpartition("=")[2] for source in map_["files"]]
        for entry in parts:
            if "://" in entry:
                continue
            target = (file.parent / entry).resolve()
            assert target.exists(), f"{file}: {entry}"
            used.add(target)
    assert set(FILES) - used == set()


# --- what the builds contain ----------------------------------------------------------------------


def test_objects_of_kubernetes_are_valid_without_unknown_fields(installed: list[Document]) -> None:
    for document in installed:
        if built_in(document):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_base_has_the_crd_the_service_and_the_registration() -> None:
    kinds = sorted(document["kind"] for document in build(INSTALL / "base"))
    assert kinds == [
        "ClusterRole",
        "ClusterRole",
        "CompositeController",
        "CustomResourceDefinition",
        "Deployment",
        "Namespace",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Service",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ]


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_service_has_no_credentials(overlay: str) -> None:
    """No overlay gives the service an account, a token or egress (promise P10)."""
    assert_no_credentials(build(INSTALL / overlay))


def test_no_component_except_events_and_resize_adds_credentials() -> None:
    documents = composed(*(name for name in COMPONENTS if name not in {EVENTS, RESIZE}))
    assert_no_credentials(documents)
    assert not {"TAPP_EVENTS", "TAPP_RESIZE"} & environment(documents).keys()


def assert_no_credentials(documents: list[Document]) -> None:
    """Checks that the service has no account, no token, no binding, and no egress in the network
    policy.
    """
    assert pod_spec(documents)["automountServiceAccountToken"] is False
    assert "serviceAccountName" not in pod_spec(documents)
    assert "ServiceAccount" not in {document["kind"] for document in documents}
    bound = [
        subject["namespace"]
        for document in documents
        if document["kind"] in {"RoleBinding", "ClusterRoleBinding"}
        for subject in document["subjects"]
    ]
    assert {*bound} <= {"metacontroller"}
    assert only(documents, "NetworkPolicy")["spec"]["egress"] == []


RIGHTS = {
    EVENTS: {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create"]},
    RESIZE: {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
}


@pytest.mark.parametrize("component", RIGHTS)
def test_component_adds_an_account_with_a_single_right(component: str) -> None:
    """The component gives the service an account with one right, and nothing else (promise P10).

    The network policy of the component also allows connections to the API server.
    """
    documents = composed(component)
    name = only(documents, "ServiceAccount")["metadata"]["name"]
    assert pod_spec(documents)["serviceAccountName"] == name
    assert pod_spec(documents)["automountServiceAccountToken"] is True
    enabled = {f"TAPP_{each.upper()}" for each in RIGHTS} & environment(documents).keys()
    assert enabled == {f"TAPP_{component.upper()}"}
    assert environment(documents)[f"TAPP_{component.upper()}"] == "true"
    binding = only(documents, "ClusterRoleBinding")
    accounts = {(each["kind"], each["name"], each["namespace"]) for each in binding["subjects"]}
    # Both components share the account of Events, so the right to resize is bound to it, too.
    assert {(kind, place) for kind, _, place in accounts} == {("ServiceAccount", "tapp-system")}
    assert {each for _, each, _ in accounts} == {name, "tapp-hooks"}
    assert only(documents, "ClusterRole", binding["roleRef"]["name"])["rules"] == [
        RIGHTS[component]
    ]
    assert not {document["kind"] for document in documents} & {"Role", "RoleBinding"}
    (out,) = only(documents, "NetworkPolicy")["spec"]["egress"]
    assert {each["port"] for each in out["ports"]} == {443, 6443}


@pytest.mark.parametrize("order", [(EVENTS, RESIZE), (RESIZE, EVENTS)], ids="+".join)
def test_events_and_resize_share_an_account_with_both_rights_in_any_order(
    order: tuple[str, str],
) -> None:
    documents = composed(*order)
    account = pod_spec(documents)["serviceAccountName"]
    bound = {
        document["roleRef"]["name"]
        for document in documents
        if document["kind"] == "ClusterRoleBinding"
        and account in {item["name"] for item in document["subjects"]}
    }
    assert bound == {"tapp-hooks-events", "tapp-hooks-resize"}
    assert {"TAPP_EVENTS", "TAPP_RESIZE"} <= environment(documents).keys()


def test_events_component_has_the_same_result_first_and_last() -> None:
    others = [name for name in COMPONENTS if name != EVENTS]
    first, last = deepcopy(composed(EVENTS, *others)), deepcopy(composed(*others, EVENTS))

    def sorted_by_name(items: list[Document]) -> list[Document]:
        return sorted(items, key=lambda item: str(item["name"]))

    for documents in (first, last):
        (container,) = pod_spec(documents)["containers"]
        for field in ("env", "volumeMounts"):
            container[field] = sorted_by_name(container[field])
        pod_spec(documents)["volumes"] = sorted_by_name(pod_spec(documents)["volumes"])

    def key(document: Document) -> tuple[str, str]:
        return document["kind"], document["metadata"]["name"]

    assert sorted(first, key=key) == sorted(last, key=key)


def test_all_namespaced_objects_are_in_the_namespace_of_the_manifests(
    installed: list[Document],
) -> None:
    name = only(installed, "Namespace")["metadata"]["name"]
    used = {document["metadata"].get("namespace", name) for document in installed}
    assert used == {name} == {"tapp-system"}


def test_all_selectors_match_the_pods_of_the_deployment(installed: list[Document]) -> None:
    deployment = only(installed, "Deployment")["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    selectors = [
        deployment["selector"]["matchLabels"],
        only(installed, "Service")["spec"]["selector"],
        only(installed, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        only(installed, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        *[
            preferred["podAffinityTerm"]["labelSelector"]["matchLabels"]
            for preferred in deployment["template"]["spec"]["affinity"]["podAntiAffinity"][
                "preferredDuringSchedulingIgnoredDuringExecution"
            ]
        ],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels.items()


# --- the registration -----------------------------------------------------------------------------


def test_hook_urls_have_the_host_port_and_scheme_of_the_service(installed: list[Document]) -> None:
    service = only(installed, "Service")
    (port,) = service["spec"]["ports"]
    (container,) = pod_spec(installed)["containers"]
    (listening,) = container["ports"]
    variables = environment(installed)
    host = f"{service['metadata']['name']}.{service['metadata']['namespace']}.svc"
    scheme = "https" if "TAPP_TLS_CERT_FILE" in variables else "http"
    assert port["targetPort"] == listening["name"]
    assert variables["PORT"] == str(listening["containerPort"])
    assert variables["HOST"] == "::"
    for name, webhook in webhooks(installed).items():
        assert webhook["url"] == f"{scheme}://{host}:{port['port']}/{name}"


def test_hook_and_probe_paths_are_routes_of_the_service() -> None:
    routes = {rule.rule for rule in create_app(Settings()).url_map.iter_rules()}
    documents = composed("pod-status")
    paths = {urlsplit(webhook["url"]).path for webhook in webhooks(documents).values()}
    assert "/pod-status" in paths <= routes
    (container,) = pod_spec(documents)["containers"]
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {container[probe]["httpGet"]["path"] for probe in probes} <= routes


def test_registration_has_the_fields_that_the_hooks_rely_on(installed: list[Document]) -> None:
    controller = only(installed, "CompositeController")
    spec = controller["spec"]
    assert controller["metadata"]["name"] == "tapp-controller"
    assert spec["generateSelector"] is True
    parent = {key: item for key, item in spec["parentResource"].items() if key != "labelSelector"}
    assert parent == {
        "apiVersion": vocabulary.API_VERSION,
        "resource": "tapps",
        "ignoreStatusChanges": True,
    }
    children = {
        child["resource"]: child["updateStrategy"]["method"] for child in spec["childResources"]
    }
    for kind in PLAIN:
        assert children.pop(kind.resource, "InPlace") == "InPlace"
    assert children == {
        "pods": "InPlace",
        "persistentvolumeclaims": "InPlace",
        "controllerrevisions": "OnDelete",
    }
    assert spec["resyncPeriodSeconds"] == 300
    assert tuple(sorted(spec["hooks"])) == tuple(sorted(HOOKS))
    for hook in spec["hooks"].values():
        assert hook["version"] == "v2"
        assert hook["webhook"]["timeout"].endswith("s")
        assert "etag" not in hook["webhook"]


def test_pod_registration_selects_only_labeled_pods() -> None:
    shipped = yaml.safe_load(DECORATOR.read_text(encoding="utf-8"))
    built = only(composed("pod-status"), "DecoratorController")
    assert built["spec"] == shipped["spec"]
    assert built["metadata"]["name"] == "tapp-pod-status"
    assert built["spec"] == {
        "resources": [
            {
                "apiVersion": "v1",
                "resource": "pods",
                "labelSelector": {"matchLabels": {vocabulary.POD_STATUS: "true"}},
            }
        ],
        "resyncPeriodSeconds": 300,
        "hooks": {
            "sync": {
                "version": "v2",
                "webhook": {
                    "url": "http://tapp-hooks.tapp-system.svc:8080/pod-status",
                    "timeout": "10s",
                },
            }
        },
    }


def test_registered_resource_is_that_of_the_crd(installed: list[Document]) -> None:
    parent = only(installed, "CompositeController")["spec"]["parentResource"]
    crd = only(installed, "CustomResourceDefinition")["spec"]
    served = [f"{crd['group']}/{each['name']}" for each in crd["versions"] if each["served"]]
    assert parent["resource"] == crd["names"]["plural"]
    assert parent["apiVersion"] in served


# --- Pod Security "restricted" --------------------------------------------------------------------


def test_namespace_enforces_restricted_pods(installed: list[Document]) -> None:
    labels = only(installed, "Namespace")["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"


def test_pods_are_restricted_and_write_only_to_volumes(installed: list[Document]) -> None:
    """The pod of the service meets the restricted profile, and only volumes are writable.

    The directory /tmp is writable because gunicorn needs it. The user is a number in the image,
    because the kubelet cannot tell whether a name is root. A pod must not set it: OpenShift's
    restricted-v2 gives each namespace its own IDs.
    """
    spec = pod_spec(installed)
    assert spec["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert "\nUSER 65532:65532\n" in (INSTALL.parent / "Dockerfile").read_text()
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
    kinds = {kind for volume in spec["volumes"] for kind in volume if kind != "name"}
    assert kinds <= {"configMap", "emptyDir", "projected", "secret"}
    for container in [*spec.get("initContainers", ()), *spec["containers"]]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
        }
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}
        assert not any("hostPort" in port for port in container["ports"])
        handlers = [container[f"{name}Probe"] for name in ("startup", "liveness", "readiness")]
        for handler in (*handlers, *container["lifecycle"].values()):
            assert "host" not in handler.get("httpGet", {}) | handler.get("tcpSocket", {})


# --- the Deployment -------------------------------------------------------------------------------


def test_pod_of_the_service_is_ready_during_rollouts_and_drains() -> None:
    """There are two replicas, of which one stays, and the grace period is long enough to finish
    calls.
    """
    base = build(INSTALL / "base")
    deployment = only(base, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert only(base, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
    (container,) = pod_spec(base)["containers"]
    source = (INSTALL.parent / "gunicorn.conf.py").read_text(encoding="utf-8")
    (graceful,) = re.findall(r"^graceful_timeout = (\d+)", source, re.MULTILINE)
    grace = pod_spec(base)["terminationGracePeriodSeconds"]
    assert grace > container["lifecycle"]["preStop"]["sleep"]["seconds"] + int(graceful)
    assert container["resources"]["requests"]
    assert container["resources"]["limits"]["memory"]
    assert "cpu" not in container["resources"]["limits"]


def test_variables_of_the_deployment_are_valid_settings(
    installed: list[Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    gunicorn = {"TAPP_TLS_CERT_FILE", "TAPP_TLS_KEY_FILE", "TAPP_TLS_CLIENT_CA_FILE"}
    known = {f"TAPP_{name.upper()}" for name in Settings.model_fields} | gunicorn
    variables = environment(installed)
    assert {name for name in variables if name.startswith("TAPP_")} <= known
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Settings().log_level == "INFO"


def test_network_policy_allows_metacontroller_and_labeled_collectors_in_and_nothing_out() -> None:
    base = build(INSTALL / "base")
    policy = only(base, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert policy["egress"] == []
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"port": "hooks", "protocol": "TCP"}]
    assert rule["from"] == [
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "metacontroller"}}},
        {
            "namespaceSelector": {},
            "podSelector": {"matchLabels": {"apps.tkestack.io/scrapes-tapp-hooks": "true"}},
        },
    ]


CALLERS = {
    ("only-metacontroller",): [],
    ("only-metacontroller", "monitoring"): ["prometheus"],
    ("monitoring", "only-metacontroller"): ["prometheus"],
}


@pytest.mark.parametrize(("order", "besides"), CALLERS.items(), ids="+".join)
def test_component_allows_only_pods_of_metacontroller_in(
    order: tuple[str, ...], besides: list[str]
) -> None:
    """The network policy admits pods of Metacontroller only; Prometheus is added by the monitoring
    component.

    Other pods in Metacontroller's namespace and labeled collectors are refused.
    """
    (rule,) = only(composed(*order), "NetworkPolicy")["spec"]["ingress"]
    first, *others = rule["from"]
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "metacontroller"}}
    assert first["namespaceSelector"] == namespace
    (expression,) = first["podSelector"]["matchExpressions"]
    assert expression["key"] == "app.kubernetes.io/name"
    assert expression["operator"] == "In"
    assert "metacontroller" in expression["values"]
    named = [each["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for each in others]
    assert named == besides
