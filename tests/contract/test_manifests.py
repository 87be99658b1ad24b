"""Tests the install manifests: kustomize builds them, Kubernetes accepts them, and their names
match.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from itertools import permutations
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from crds.kubernetes_schema import KUBERNETES
from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.version import VERSION
from tapp.words import vocabulary
from tapp.words.kinds import PLAIN
from tests.contract.manifests import (
    INSTALL,
    METACONTROLLER,
    Document,
    build,
    composed,
    key_of_secret,
    kustomize,
    only,
    pod_spec,
)
from tests.contract.metacontroller_substitutes import manifests_in

OVERLAYS = ["base", "overlays/bearer-token", "overlays/kind", "overlays/tls"]
"""Kustomizations that can be built without a network."""
POLICIES = "components/admission-policies"
EVENTS, RESIZE = "events", "resize"
CUSTOM_GROUPS = {"metacontroller.k8s.io", "cert-manager.io", "monitoring.coreos.com"}
COMPONENTS = sorted(each.name for each in (INSTALL / "components").iterdir())
DECORATOR = INSTALL / "components" / "pod-status" / "decorator-controller.yaml"
HOOKS = ("sync", "finalize", "customize")

STATE_METRICS = INSTALL / "components" / "monitoring" / "kube-state-metrics.yaml"
"""A file for kube-state-metrics, not for the API server."""
FOR_KUSTOMIZE = INSTALL / "namespace" / "replacements.yaml"
FILES = sorted(set(INSTALL.rglob("*.yaml")) - {STATE_METRICS, FOR_KUSTOMIZE})


def built_in(document: Document) -> bool:
    """Returns True if Kubernetes itself defines the kind of the object, and not a CRD."""
    return document["apiVersion"].split("/")[0] not in CUSTOM_GROUPS | {vocabulary.GROUP}


def environment(documents: list[Document]) -> dict[str, str]:
    """Returns name -> value for the environment variables of the service."""
    (container,) = pod_spec(documents)["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def webhooks(documents: list[Document]) -> dict[str, Document]:
    """Returns the name of each hook -> its webhook in the CompositeController or a
    DecoratorController.
    """
    hooks = only(documents, "CompositeController")["spec"]["hooks"]
    found = {name: hook["webhook"] for name, hook in hooks.items()}
    for document in documents:
        if document["kind"] == "DecoratorController":
            name = document["metadata"]["name"].removeprefix("tapp-")
            found[name] = document["spec"]["hooks"]["sync"]["webhook"]
    return found


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


# --- the overlays' own promises -------------------------------------------------------------------


def secret_files(documents: list[Document], volume: str) -> tuple[str, set[str]]:
    """Returns the name of the Secret in a volume, and the paths of its keys in the container."""
    (container,) = pod_spec(documents)["containers"]
    (source,) = [
        each["secret"] for each in pod_spec(documents)["volumes"] if each["name"] == volume
    ]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == volume]
    keys = [item["path"] for item in source.get("items", ())] or ["tls.crt", "tls.key"]
    return source["secretName"], {f"{mount['mountPath']}/{key}" for key in keys}


def test_bearer_token_of_both_sides_is_in_the_same_secret() -> None:
    documents = build(INSTALL / "overlays/bearer-token")
    secret, files = secret_files(documents, "token")
    assert environment(documents)["TAPP_AUTH_TOKEN_FILE"] in files
    for webhook in webhooks(documents).values():
        assert webhook["authorization"] == {
            "type": "Bearer",
            "secretRef": {"name": secret, "namespace": "tapp-system", "key": "token"},
        }


def test_tls_certificate_fits_the_url_the_service_and_metacontroller() -> None:
    documents = build(INSTALL / "overlays/tls")
    secret, files = secret_files(documents, "tls")
    certificate = only(documents, "Certificate", "tapp-hooks")["spec"]
    variables = environment(documents)
    assert certificate["secretName"] == secret
    assert {variables["TAPP_TLS_CERT_FILE"], variables["TAPP_TLS_KEY_FILE"]} <= files
    for webhook in webhooks(documents).values():
        assert urlsplit(webhook["url"]).hostname in certificate["dnsNames"]
        assert webhook["caBundle"] == {
            "secretRef": {"name": secret, "namespace": "tapp-system", "key": "ca.crt"}
        }
    (container,) = pod_spec(documents)["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
    issuers = {each["metadata"]["name"] for each in documents if each["kind"] == "Issuer"}
    asked = {e["spec"]["issuerRef"]["name"] for e in documents if e["kind"] == "Certificate"}
    assert asked == issuers


LOCKS = ("bearer-token", "pod-status", "tls-cert-manager")
ORDERS = [order for count in (1, 2, 3) for order in permutations(LOCKS, count)]


@pytest.mark.parametrize("order", ORDERS, ids="+".join)
def test_components_configure_token_and_tls_of_every_hook_in_any_order(
    order: tuple[str, ...],
) -> None:
    documents = composed(*order)
    found = webhooks(documents)
    assert ("pod-status" in found) == ("pod-status" in order)
    tls = "tls-cert-manager" in order
    base = f"http{'s' * tls}://tapp-hooks.tapp-system.svc:{8443 if tls else 8080}"
    lock = {
        "bearer-token": ("authorization", {"type": "Bearer", "secretRef": key_of_secret("token")}),
        "tls-cert-manager": ("caBundle", {"secretRef": key_of_secret("ca.crt", "tls")}),
    }
    locks = dict(lock[name] for name in order if name in lock)
    for name, webhook in found.items():
        timeout = "10s" if name in ("customize", "pod-status") else "30s"
        assert webhook == {"url": f"{base}/{name}", "timeout": timeout, **locks}


def test_pod_status_without_the_base_is_refused() -> None:
    """Builds the component pod-status alone, which kustomize refuses.

    Without the base, the component would not know the token and TLS of the installation.
    """
    command = kustomize()
    if command is None:
        pytest.skip("neither kubectl nor kustomize on PATH")
    done = subprocess.run(
        [*command, str(DECORATOR.parent)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "nothing selected by CompositeController" in done.stderr


def test_image_of_the_base_is_a_name_that_nobody_can_publish() -> None:
    """The image is in the registry `set-the-image.invalid`, so a pull fails until a user sets the
    image.
    """
    (container,) = pod_spec(build(INSTALL / "base"))["containers"]
    registry, _, rest = container["image"].partition("/")
    assert registry == "set-the-image.invalid"
    assert rest == f"tapp-hooks:{VERSION}"


def test_kind_overlay_runs_a_local_image() -> None:
    documents = build(INSTALL / "overlays/kind")
    (container,) = pod_spec(documents)["containers"]
    assert container["image"] == "tapp-hooks:dev"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert only(documents, "Deployment")["spec"]["replicas"] == 1


def test_all_components_together_are_a_valid_installation() -> None:
    documents = composed(*COMPONENTS, stub=False)
    for document in documents:
        if built_in(document):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
    assert set(webhooks(documents)) == {*HOOKS, "pod-status"}
    for webhook in webhooks(documents).values():
        assert {"authorization", "caBundle"} <= set(webhook)
    assert "replicas" not in only(documents, "Deployment")["spec"]
    target = only(documents, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert target == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "tapp-hooks"}


class TestMetacontrollerOverlay:
    """Tests the overlay with Metacontroller, without its remote base."""

    KUSTOMIZATION: Document = yaml.safe_load((METACONTROLLER / "kustomization.yaml").read_text())
    PATCH: Document = yaml.safe_load((METACONTROLLER / "arguments.yaml").read_text())

    def test_overlay_pins_the_version(self) -> None:
        assert self.KUSTOMIZATION["resources"] == [
            "https://github.com/metacontroller/metacontroller//manifests/production?ref=v4.17.2"
        ]
        assert self.KUSTOMIZATION["patches"] == [{"path": "arguments.yaml"}]

    def test_overlay_sets_arguments_and_resources_and_names_the_metrics_port(self) -> None:
        assert self.PATCH["kind"] == "StatefulSet"
        assert self.PATCH["metadata"] == {"name": "metacontroller", "namespace": "metacontroller"}
        (container,) = self.PATCH["spec"]["template"]["spec"]["containers"]
        assert set(container) == {"name", "args", "resources", "ports"}
        assert container["ports"] == [{"name": "metrics", "containerPort": 9999}]
        flags = dict(argument.removeprefix("--").split("=") for argument in container["args"])
        assert int(flags["client-go-qps"]) >= 100
        assert int(flags["client-go-burst"]) >= int(flags["client-go-qps"])
        assert int(flags["workers"]) >= 5

    def test_network_policy_allows_the_namespace_of_the_overlay(self) -> None:
        policy = only(build(INSTALL / "base"), "NetworkPolicy")["spec"]
        allowed = policy["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]
        assert self.PATCH["metadata"]["namespace"] in allowed.values()


class TestMoreThanOneMetacontroller:
    """Tests the overlays for a second replica and for a shard."""

    TWO = INSTALL / "overlays" / "high-availability"
    SHARD = INSTALL / "overlays" / "shard"

    def test_second_replica_uses_leases_for_leader_election(self) -> None:
        role, binding = yaml.safe_load_all((self.TWO / "leases.yaml").read_text())
        (rule,) = role["rules"]
        assert rule["resources"] == ["leases"]
        assert rule["apiGroups"] == ["coordination.k8s.io"]
        assert role["metadata"]["namespace"] == "metacontroller"
        assert binding["roleRef"]["name"] == role["metadata"]["name"]
        kustomization = yaml.safe_load((self.TWO / "kustomization.yaml").read_text())
        assert kustomization["resources"][0] == "../least-privilege"
        (added,) = [each["patch"] for each in kustomization["patches"] if "patch" in each]
        (operation,) = yaml.safe_load(added)
        assert operation["value"] == "--leader-election"
        two = yaml.safe_load((self.TWO / "two.yaml").read_text())
        assert two["spec"]["replicas"] == 2

    def test_high_availability_has_two_elected_replicas_apart(self, tmp_path: Path) -> None:
        """Builds the overlay for high availability with copies of Metacontroller's manifests."""
        shutil.copytree(INSTALL / "overlays", tmp_path / "overlays")
        manifests_in(tmp_path)
        pinned = tmp_path / "overlays" / "metacontroller" / "kustomization.yaml"
        (source,) = TestMetacontrollerOverlay.KUSTOMIZATION["resources"]
        pinned.write_text(pinned.read_text().replace(source, "../../production"))
        role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: %s}\n"
        theirs = tmp_path / "production"
        (theirs / "role.yaml").write_text(role % "metacontroller")
        listed = yaml.safe_load((theirs / "kustomization.yaml").read_text())
        listed["resources"].append("role.yaml")
        (theirs / "kustomization.yaml").write_text(yaml.safe_dump(listed))
        documents = build(tmp_path / "overlays" / "high-availability")
        spec = only(documents, "StatefulSet")["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        (shipped,) = TestMetacontrollerOverlay.PATCH["spec"]["template"]["spec"]["containers"]
        assert spec["replicas"] == 2
        assert container["args"] == [*shipped["args"], "--leader-election"]
        assert "podAntiAffinity" in spec["template"]["spec"]["affinity"]
        assert only(documents, "PodDisruptionBudget")["spec"]["maxUnavailable"] == 1
        for kind in ("Role", "RoleBinding", "PodDisruptionBudget"):
            assert only(documents, kind)["metadata"]["namespace"] == "metacontroller"
        assert only(documents, "ClusterRole")["rules"] == TestLeastPrivilege.ROLE["rules"]

    def test_shard_adds_a_registration_for_its_label(self) -> None:
        documents = deepcopy(build(self.SHARD))
        assert len(documents) == 2
        shard = {vocabulary.SHARD: "b"}
        made = only(documents, "CompositeController")
        assert made["metadata"]["name"] == "tapp-controller-b"
        assert made["metadata"]["labels"].items() >= shard.items()
        selected = made["spec"]["parentResource"].pop("labelSelector")
        assert selected == {"matchLabels": shard}
        default = deepcopy(only(composed("shards"), "CompositeController"))
        others = default["spec"]["parentResource"].pop("labelSelector")
        assert others["matchExpressions"] == [{"key": vocabulary.SHARD, "operator": "DoesNotExist"}]
        assert made["spec"] == default["spec"]

    def test_metacontroller_of_a_shard_differs_only_in_its_selector(self) -> None:
        made = only(build(self.SHARD), "StatefulSet")
        patch = TestMetacontrollerOverlay.PATCH
        (version,) = TestMetacontrollerOverlay.KUSTOMIZATION["resources"]
        (container,) = made["spec"]["template"]["spec"]["containers"]
        (theirs,) = patch["spec"]["template"]["spec"]["containers"]
        assert container["image"].rpartition(":")[2] == version.rpartition("=")[2]
        assert container["ports"] == theirs["ports"]
        *same, mine = container["args"]
        *shared, others = theirs["args"]
        assert same == shared
        assert others == f"--target-label-selector=!{vocabulary.SHARD}"
        assert mine == f"--target-label-selector={vocabulary.SHARD}=b"

    def test_policy_of_shards_has_the_names_of_the_code(self) -> None:
        text = (INSTALL / "components" / "shards" / "one-at-a-time.yaml").read_text()
        name = only(build(INSTALL / "base"), "CompositeController")["metadata"]["name"]
        assert f"'metacontroller.io/compositecontroller-{name}'" in text
        assert vocabulary.SHARD in text


class TestLeastPrivilege:
    """Tests the rights of Metacontroller in its role, and their list on the page about security."""

    OVERLAY = INSTALL / "overlays" / "least-privilege"
    ROLE: Document = yaml.safe_load((OVERLAY / "cluster-role.yaml").read_text())
    PAGE = (INSTALL.parent / "docs" / "security.md").read_text(encoding="utf-8")

    def test_role_replaces_the_role_in_metacontrollers_manifests(self) -> None:
        assert self.ROLE["metadata"]["name"] == "metacontroller"
        kustomization = yaml.safe_load((self.OVERLAY / "kustomization.yaml").read_text())
        assert kustomization["resources"] == ["../metacontroller"]

    def test_role_has_no_wildcards_and_no_secrets(self) -> None:
        for rule in self.ROLE["rules"]:
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"secrets", "configmaps"} & {*rule["resources"]}

    def test_role_covers_all_registered_kinds(self) -> None:
        """The role allows all verbs that Metacontroller needs for each kind of children.

        If the role lacks a registered kind, Metacontroller cannot work at all.
        """
        verbs = {
            (group, resource): {*rule["verbs"]}
            for rule in self.ROLE["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        spec = only(build(INSTALL / "base"), "CompositeController")["spec"]
        for child in spec["childResources"]:
            group = child["apiVersion"].rpartition("/")[0]
            needed = {"list", "watch", "create", "delete"}
            if child["updateStrategy"]["method"] != "OnDelete":
                needed |= {"update"}
            assert needed <= verbs.get((group, child["resource"]), set()), child

    def test_page_about_security_has_each_component(self) -> None:
        told = re.findall(
            r"(?m)^\| ([a-z-]+) \| [^|]+ \|$", self.PAGE.split("each component adds")[1]
        )
        assert {*COMPONENTS} <= {*told}

    def test_page_about_security_has_each_right(self) -> None:
        rows = re.findall(r"(?m)^\| (`.+?) \| ([a-z, ]+) \| .+ \|$", self.PAGE)
        told = {tuple(re.findall(r"`([^`]+)`", on)): may.split(", ") for on, may in rows}
        assert told == {tuple(rule["resources"]): rule["verbs"] for rule in self.ROLE["rules"]}


# --- admission policies ---------------------------------------------------------------------------


class TestAdmissionPolicies:
    def test_each_admission_policy_has_a_binding(self) -> None:
        """Each policy has a binding, without which it does nothing."""
        documents = build(INSTALL / POLICIES)
        policies = {
            each["metadata"]["name"]
            for each in documents
            if each["kind"] == "MutatingAdmissionPolicy"
        }
        bound = {
            each["spec"]["policyName"]
            for each in documents
            if each["kind"] == "MutatingAdmissionPolicyBinding"
        }
        assert policies == bound
        assert len(policies) == 2

    def test_failure_of_an_admission_policy_blocks_nobody(self) -> None:
        """The failure policy is Ignore, because the policies are only a convenience."""
        for document in build(INSTALL / POLICIES):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
            assert document["apiVersion"] == "admissionregistration.k8s.io/v1"
            if document["kind"] == "MutatingAdmissionPolicy":
                assert document["spec"]["failurePolicy"] == "Ignore"

    def test_pod_policy_has_the_labels_and_annotations_of_the_code(self) -> None:
        policy = only(build(INSTALL / POLICIES), "MutatingAdmissionPolicy", "tapp-lean-pods")[
            "spec"
        ]
        (selected,) = policy["matchConstraints"]["objectSelector"]["matchExpressions"]
        assert selected == {"key": vocabulary.INSTANCE, "operator": "Exists"}
        owned, copied = (each["expression"] for each in policy["matchConditions"])
        assert f"owner.kind == '{vocabulary.KIND}'" in owned
        assert f"startsWith('{vocabulary.GROUP}/')" in owned
        (copy,) = (each["expression"] for each in policy["variables"] if each["name"] == "copy")
        assert copy == f"object.metadata.annotations['{vocabulary.LAST_APPLIED}']"
        assert f"'{vocabulary.LAST_APPLIED}' in object.metadata.annotations" in copied
        assert f"{copy}.contains(" in copied
        cutting, _ = (each["jsonPatch"]["expression"] for each in policy["mutations"])
        assert f"jsonpatch.escapeKey('{vocabulary.LAST_APPLIED}')" in cutting

    def test_pod_policy_ignores_writes_to_the_status(self) -> None:
        """The policy matches pods and no subresource, because most writes to pods are status
        reports of kubelets.
        """
        policy = only(build(INSTALL / POLICIES), "MutatingAdmissionPolicy", "tapp-lean-pods")[
            "spec"
        ]
        (rule,) = policy["matchConstraints"]["resourceRules"]
        assert rule["resources"] == ["pods"]
        assert rule["operations"] == ["CREATE", "UPDATE"]
