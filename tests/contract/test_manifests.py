"""The install manifests: kustomize builds them, Kubernetes takes them, and their names agree."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import permutations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from crds.kubernetes_schema import KUBERNETES
from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.version import VERSION
from release.kustomize import STUB
from tapp.words import vocabulary
from tests.contract.theirs import manifests_in

Document = dict[str, Any]

INSTALL = Path(__file__).parents[2] / "metacontroller"
OVERLAYS = ["base", "overlays/bearer-token", "overlays/kind", "overlays/tls"]
"""What can be built without a network."""
POLICIES = "components/admission-policies"
EVENTS, RESIZE = "events", "resize"
METACONTROLLER = INSTALL / "overlays" / "metacontroller"
CUSTOM_GROUPS = {"metacontroller.k8s.io", "cert-manager.io", "monitoring.coreos.com"}
COMPONENTS = sorted(each.name for each in (INSTALL / "components").iterdir())
DECORATOR = INSTALL / "components" / "pod-status" / "decorator-controller.yaml"
HOOKS = ("sync", "finalize", "customize")

STATE_METRICS = INSTALL / "components" / "monitoring" / "kube-state-metrics.yaml"
"""Not for the API server: a file of kube-state-metrics'."""
FOR_KUSTOMIZE = INSTALL / "namespace" / "replacements.yaml"
FILES = sorted(set(INSTALL.rglob("*.yaml")) - {STATE_METRICS, FOR_KUSTOMIZE})


def kustomize() -> list[str] | None:
    """The command that builds a kustomization, or None where this machine has none."""
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    if found := shutil.which("kustomize"):
        return [found, "build"]
    return None


@cache
def build(directory: Path) -> list[Document]:
    """The objects that a kustomization makes; skips where no kustomize is at hand."""
    command = kustomize()
    if command is None:
        pytest.skip("neither kubectl nor kustomize on PATH")
    done = subprocess.run(
        [*command, str(directory)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"KUBECONFIG": os.devnull, "GOGC": "off"},
    )
    assert done.returncode == 0, done.stderr
    loaded = yaml.load_all(done.stdout, yaml.CSafeLoader)
    return [document for document in loaded if document]


def only(documents: list[Document], kind: str, name: str | None = None) -> Document:
    """The one object of this kind (and name)."""
    found = [
        document
        for document in documents
        if document["kind"] == kind and name in {None, document["metadata"]["name"]}
    ]
    assert len(found) == 1, (kind, name, len(found))
    return found[0]


def built_in(document: Document) -> bool:
    """Whether Kubernetes itself defines the object's kind."""
    return document["apiVersion"].split("/")[0] not in CUSTOM_GROUPS | {vocabulary.GROUP}


def pod_spec(documents: list[Document]) -> Document:
    """The pod spec of the hooks' Deployment."""
    spec: Document = only(documents, "Deployment")["spec"]["template"]["spec"]
    return spec


def environment(documents: list[Document]) -> dict[str, str]:
    """The environment of the hooks' container."""
    (container,) = pod_spec(documents)["containers"]
    return {variable["name"]: variable["value"] for variable in container["env"]}


def webhooks(documents: list[Document]) -> dict[str, Document]:
    """The path that a hook must have -> how Metacontroller calls it."""
    hooks = only(documents, "CompositeController")["spec"]["hooks"]
    found = {name: hook["webhook"] for name, hook in hooks.items()}
    for document in documents:
        if document["kind"] == "DecoratorController":
            name = document["metadata"]["name"].removeprefix("tapp-")
            found[name] = document["spec"]["hooks"]["sync"]["webhook"]
    return found


@cache
def composed(*names: str, stub: bool = True) -> list[Document]:
    """The objects of the base with these components, in this order, as in a user's `deploy`.

    `stub` builds with a definition of TApp that says nothing: the real one takes most of the time.
    """
    with tempfile.TemporaryDirectory() as place:
        for part in ("crds", "metacontroller"):
            shutil.copytree(INSTALL.parent / part, Path(place) / part)
        if stub:
            (Path(place) / "crds" / "tapp.yaml").write_text(STUB, encoding="utf-8")
        deploy = {
            "resources": ["../metacontroller/base"],
            "components": [f"../metacontroller/components/{name}" for name in names],
        }
        directory = Path(place) / "deploy"
        directory.mkdir()
        (directory / "kustomization.yaml").write_text(yaml.safe_dump(deploy), encoding="utf-8")
        return build(directory)


@pytest.fixture(params=[*OVERLAYS, "components"])
def installed(request: pytest.FixtureRequest) -> list[Document]:
    """The objects of each overlay in turn, and of the base with all components."""
    if request.param == "components":
        return composed(*COMPONENTS, stub=False)
    return build(INSTALL / request.param)


# --- every file -----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=[str(file.relative_to(INSTALL)) for file in FILES])
def test_file_is_what_its_kind_demands(file: Path) -> None:
    """Whole objects validate, strictly; patches are lists of operations or name their target."""
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
    """Each kustomization file with its content."""
    for file in sorted(INSTALL.rglob("kustomization.yaml")):
        yield file, yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader)


PATCH_FILES = {
    file.parent / patch["path"]
    for file, content in kustomizations()
    for patch in content.get("patches", ())
    if "path" in patch
}


def test_every_file_is_used_and_every_reference_leads_somewhere() -> None:
    """No manifest lies about unused, and none is missing."""
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


def test_objects_validate(installed: list[Document]) -> None:
    """Kubernetes' schemas accept each object of its own kinds, unknown fields refused."""
    for document in installed:
        if built_in(document):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)


def test_base_is_complete() -> None:
    """One apply installs the definition, the service and its registration."""
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
def test_hooks_have_no_credentials(overlay: str) -> None:
    """P10: no service account of their own, no token, no role binding."""
    assert_no_credentials(build(INSTALL / overlay))


def test_no_component_but_events_and_resize_gives_credentials() -> None:
    """All the others together do not, either, and lead nowhere."""
    documents = composed(*(name for name in COMPONENTS if name not in {EVENTS, RESIZE}))
    assert_no_credentials(documents)
    assert not {"TAPP_EVENTS", "TAPP_RESIZE"} & environment(documents).keys()


def assert_no_credentials(documents: list[Document]) -> None:
    """Nothing to be somebody with, and nobody to speak to."""
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
def test_with_a_component_the_hooks_may_do_one_thing_and_nothing_else(component: str) -> None:
    """P10: an account of its own, the one verb, and the way to the API server."""
    documents = composed(component)
    name = only(documents, "ServiceAccount")["metadata"]["name"]
    assert pod_spec(documents)["serviceAccountName"] == name
    assert pod_spec(documents)["automountServiceAccountToken"] is True
    told = {f"TAPP_{each.upper()}" for each in RIGHTS} & environment(documents).keys()
    assert told == {f"TAPP_{component.upper()}"}
    assert environment(documents)[f"TAPP_{component.upper()}"] == "true"
    binding = only(documents, "ClusterRoleBinding")
    accounts = {(each["kind"], each["name"], each["namespace"]) for each in binding["subjects"]}
    # With both there is one account, that of the events: resize's right is bound to it, too.
    assert {(kind, place) for kind, _, place in accounts} == {("ServiceAccount", "tapp-system")}
    assert {each for _, each, _ in accounts} == {name, "tapp-hooks"}
    assert only(documents, "ClusterRole", binding["roleRef"]["name"])["rules"] == [
        RIGHTS[component]
    ]
    assert not {document["kind"] for document in documents} & {"Role", "RoleBinding"}
    (out,) = only(documents, "NetworkPolicy")["spec"]["egress"]
    assert {each["port"] for each in out["ports"]} == {443, 6443}


@pytest.mark.parametrize("order", [(EVENTS, RESIZE), (RESIZE, EVENTS)])
def test_events_and_resize_share_an_account(order: tuple[str, str]) -> None:
    """In whichever order they stand, it has both rights."""
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


def test_events_are_the_same_before_and_after_every_other_component() -> None:
    """In whichever place of `components:` it stands."""
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


def test_namespaced_objects_share_the_namespace(installed: list[Document]) -> None:
    """Everything that has a namespace lives in the one that is made here."""
    name = only(installed, "Namespace")["metadata"]["name"]
    used = {document["metadata"].get("namespace", name) for document in installed}
    assert used == {name} == {"tapp-system"}


def test_selectors_match_labels(installed: list[Document]) -> None:
    """Service, budget, network policy and spreading all mean the Deployment's pods."""
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


def test_hook_urls_reach_the_service(installed: list[Document]) -> None:
    """Host, port and scheme lead through the Service to the port that the hooks listen on."""
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


def test_hook_paths_are_routes_of_the_service() -> None:
    """Metacontroller and the kubelet ask for paths that the service has."""
    routes = {rule.rule for rule in create_app(Settings()).url_map.iter_rules()}
    documents = composed("pod-status")
    paths = {urlsplit(webhook["url"]).path for webhook in webhooks(documents).values()}
    assert "/pod-status" in paths <= routes
    (container,) = pod_spec(documents)["containers"]
    probes = ("startupProbe", "livenessProbe", "readinessProbe")
    assert {container[probe]["httpGet"]["path"] for probe in probes} <= routes


def test_registration(installed: list[Document]) -> None:
    """What the hooks rely on: selectors, strategies, protocol version, timeouts, no ETag."""
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
    assert children.pop("services", "InPlace") == "InPlace"
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


def test_registration_of_pods() -> None:
    """Only pods that ask for it; no finalizer, no children, no ETag; as the others are called."""
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


def test_registered_resource_is_the_defined_one(installed: list[Document]) -> None:
    """The CompositeController watches what the CRD serves."""
    parent = only(installed, "CompositeController")["spec"]["parentResource"]
    crd = only(installed, "CustomResourceDefinition")["spec"]
    served = [f"{crd['group']}/{each['name']}" for each in crd["versions"] if each["served"]]
    assert parent["resource"] == crd["names"]["plural"]
    assert parent["apiVersion"] in served


# --- Pod Security "restricted" --------------------------------------------------------------------


def test_namespace_demands_restricted_pods(installed: list[Document]) -> None:
    """The cluster enforces what the tests below check."""
    labels = only(installed, "Namespace")["metadata"]["labels"]
    for mode in ("enforce", "audit", "warn"):
        assert labels[f"pod-security.kubernetes.io/{mode}"] == "restricted"


def test_pods_are_restricted_and_write_no_file_of_the_image(installed: list[Document]) -> None:
    """The contexts are these and no others; /tmp stays writable for gunicorn.

    The user is the image's, a number, because the kubelet cannot tell whether a name is root:
    OpenShift's restricted-v2 refuses ids in a pod, as it gives each namespace its own.
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


def test_rollouts_and_drains_leave_someone_to_answer() -> None:
    """Two replicas, none missing in a rollout, one at most in a drain; time to finish calls."""
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


def test_settings_are_known(installed: list[Document], monkeypatch: pytest.MonkeyPatch) -> None:
    """Each TAPP_ variable is a setting of the service or of gunicorn, with a legal value."""
    gunicorn = {"TAPP_TLS_CERT_FILE", "TAPP_TLS_KEY_FILE", "TAPP_TLS_CLIENT_CA_FILE"}
    known = {f"TAPP_{name.upper()}" for name in Settings.model_fields} | gunicorn
    variables = environment(installed)
    assert {name for name in variables if name.startswith("TAPP_")} <= known
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert Settings().log_level == "INFO"


def test_network_policy() -> None:
    """In: Metacontroller's namespace and labelled collectors. Out: nothing."""
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
def test_only_metacontrollers_pods_are_let_in(order: tuple[str, ...], besides: list[str]) -> None:
    """Its namespace is not enough, and neither is a label of collectors; Prometheus where asked."""
    (rule,) = only(composed(*order), "NetworkPolicy")["spec"]["ingress"]
    first, *others = rule["from"]
    namespace = {"matchLabels": {"kubernetes.io/metadata.name": "metacontroller"}}
    assert first["namespaceSelector"] == namespace
    (expression,) = first["podSelector"]["matchExpressions"]
    assert (expression["key"], expression["operator"]) == ("app.kubernetes.io/name", "In")
    assert "metacontroller" in expression["values"]
    named = [each["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for each in others]
    assert named == besides


# --- the overlays' own promises -------------------------------------------------------------------


def secret_files(documents: list[Document], volume: str) -> tuple[str, set[str]]:
    """The Secret behind a volume, and the paths at which the container finds its keys."""
    (container,) = pod_spec(documents)["containers"]
    (source,) = [
        each["secret"] for each in pod_spec(documents)["volumes"] if each["name"] == volume
    ]
    (mount,) = [each for each in container["volumeMounts"] if each["name"] == volume]
    keys = [item["path"] for item in source.get("items", ())] or ["tls.crt", "tls.key"]
    return source["secretName"], {f"{mount['mountPath']}/{key}" for key in keys}


def test_bearer_token_is_sent_and_demanded() -> None:
    """Both sides take the token from the same Secret."""
    documents = build(INSTALL / "overlays/bearer-token")
    secret, files = secret_files(documents, "token")
    assert environment(documents)["TAPP_AUTH_TOKEN_FILE"] in files
    for webhook in webhooks(documents).values():
        assert webhook["authorization"] == {
            "type": "Bearer",
            "secretRef": {"name": secret, "namespace": "tapp-system", "key": "token"},
        }


def test_tls_certificate_fits_the_url_and_the_trust() -> None:
    """The certificate names the URL's host, the hooks load it, Metacontroller trusts its CA."""
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
def test_components_say_of_every_hook_how_it_is_called_in_any_order(order: tuple[str, ...]) -> None:
    """The token and TLS reach all hooks alike, whichever component comes first or is left out."""
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


def key_of_secret(key: str, name: str = "token") -> Document:
    """How a webhook refers to a key of a Secret of ours."""
    return {"name": f"tapp-hooks-{name}", "namespace": "tapp-system", "key": key}


def test_pod_status_without_the_base_is_refused() -> None:
    """Applied alone it would not know of the token and TLS of what is installed."""
    command = kustomize()
    if command is None:
        pytest.skip("neither kubectl nor kustomize on PATH")
    done = subprocess.run(
        [*command, str(DECORATOR.parent)], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "nothing selected by CompositeController" in done.stderr


def test_no_image_is_named_that_somebody_could_publish() -> None:
    """Until it is set, a pull fails on a name that says so, and nobody can come to own it."""
    (container,) = pod_spec(build(INSTALL / "base"))["containers"]
    registry, _, rest = container["image"].partition("/")
    assert registry == "set-the-image.invalid"
    assert rest == f"tapp-hooks:{VERSION}"


def test_kind_overlay_runs_a_local_image() -> None:
    """One replica of an image that no registry has."""
    documents = build(INSTALL / "overlays/kind")
    (container,) = pod_spec(documents)["containers"]
    assert container["image"] == "tapp-hooks:dev"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert only(documents, "Deployment")["spec"]["replicas"] == 1


def test_components_combine() -> None:
    """Token, TLS, autoscaling, pod status and policies together are one valid install."""
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
    """Its base is remote, so it is tested by its shape."""

    KUSTOMIZATION: Document = yaml.safe_load((METACONTROLLER / "kustomization.yaml").read_text())
    PATCH: Document = yaml.safe_load((METACONTROLLER / "arguments.yaml").read_text())

    def test_pins_the_version(self) -> None:
        assert self.KUSTOMIZATION["resources"] == [
            "https://github.com/metacontroller/metacontroller//manifests/production?ref=v4.17.2"
        ]
        assert self.KUSTOMIZATION["patches"] == [{"path": "arguments.yaml"}]

    def test_patches_arguments_and_resources_and_names_the_port_of_its_metrics(self) -> None:
        assert self.PATCH["kind"] == "StatefulSet"
        assert self.PATCH["metadata"] == {"name": "metacontroller", "namespace": "metacontroller"}
        (container,) = self.PATCH["spec"]["template"]["spec"]["containers"]
        assert set(container) == {"name", "args", "resources", "ports"}
        assert container["ports"] == [{"name": "metrics", "containerPort": 9999}]
        flags = dict(argument.removeprefix("--").split("=") for argument in container["args"])
        assert int(flags["client-go-qps"]) >= 100
        assert int(flags["client-go-burst"]) >= int(flags["client-go-qps"])
        assert int(flags["workers"]) >= 5

    def test_its_namespace_may_call_the_hooks(self) -> None:
        policy = only(build(INSTALL / "base"), "NetworkPolicy")["spec"]
        allowed = policy["ingress"][0]["from"][0]["namespaceSelector"]["matchLabels"]
        assert self.PATCH["metadata"]["namespace"] in allowed.values()


class TestMoreThanOneMetacontroller:
    """The overlays for a second replica and for a shard."""

    TWO = INSTALL / "overlays" / "high-availability"
    SHARD = INSTALL / "overlays" / "shard"

    def test_the_second_replica_is_elected_by_leases_and_nothing_else(self) -> None:
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

    def test_two_are_built_on_its_own_manifests(self, tmp_path: Path) -> None:
        """On what stands in for them: two replicas, apart, that elect, beside all other flags."""
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

    def test_a_shard_is_a_registration_and_a_metacontroller(self) -> None:
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

    def test_its_metacontroller_is_the_same_with_another_selector(self) -> None:
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

    def test_the_policy_uses_our_names(self) -> None:
        text = (INSTALL / "components" / "shards" / "one-at-a-time.yaml").read_text()
        name = only(build(INSTALL / "base"), "CompositeController")["metadata"]["name"]
        assert f"'metacontroller.io/compositecontroller-{name}'" in text
        assert vocabulary.SHARD in text


class TestLeastPrivilege:
    """Metacontroller's rights, as a role and as a page for people."""

    OVERLAY = INSTALL / "overlays" / "least-privilege"
    ROLE: Document = yaml.safe_load((OVERLAY / "cluster-role.yaml").read_text())
    PAGE = (INSTALL.parent / "docs" / "security.md").read_text(encoding="utf-8")

    def test_takes_the_place_of_the_role_of_its_own_manifests(self) -> None:
        assert self.ROLE["metadata"]["name"] == "metacontroller"
        kustomization = yaml.safe_load((self.OVERLAY / "kustomization.yaml").read_text())
        assert kustomization["resources"] == ["../metacontroller"]

    def test_allows_nothing_by_a_star_and_no_secrets(self) -> None:
        for rule in self.ROLE["rules"]:
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"secrets", "configmaps"} & {*rule["resources"]}

    def test_covers_what_is_registered(self) -> None:
        """A kind of children that the registration declares, and the role forgets, stops all."""
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

    def test_the_page_tells_what_each_component_adds(self) -> None:
        told = re.findall(
            r"(?m)^\| ([a-z-]+) \| [^|]+ \|$", self.PAGE.split("each component adds")[1]
        )
        assert {*COMPONENTS} <= {*told}

    def test_the_page_tells_each_right(self) -> None:
        rows = re.findall(r"(?m)^\| (`.+?) \| ([a-z, ]+) \| .+ \|$", self.PAGE)
        told = {tuple(re.findall(r"`([^`]+)`", on)): may.split(", ") for on, may in rows}
        assert told == {tuple(rule["resources"]): rule["verbs"] for rule in self.ROLE["rules"]}


# --- admission policies ---------------------------------------------------------------------------


class TestAdmissionPolicies:
    def test_each_has_its_binding(self) -> None:
        """A policy without a binding does nothing."""
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

    def test_they_validate_and_never_block(self) -> None:
        """Both are conveniences: their failure must not keep anyone from working."""
        for document in build(INSTALL / POLICIES):
            kubernetes_validate.validate(document, KUBERNETES, strict=True)
            assert document["apiVersion"] == "admissionregistration.k8s.io/v1"
            if document["kind"] == "MutatingAdmissionPolicy":
                assert document["spec"]["failurePolicy"] == "Ignore"

    def test_the_pod_policy_uses_our_names(self) -> None:
        """The label that it looks for and the annotation that it cuts are the shared ones."""
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

    def test_the_pod_policy_looks_at_what_is_written_to_pods_alone(self) -> None:
        """Not at what kubelets report, which is most of what is written."""
        policy = only(build(INSTALL / POLICIES), "MutatingAdmissionPolicy", "tapp-lean-pods")[
            "spec"
        ]
        (rule,) = policy["matchConstraints"]["resourceRules"]
        assert (rule["resources"], rule["operations"]) == (["pods"], ["CREATE", "UPDATE"])
