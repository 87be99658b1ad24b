"""Tests the properties of single overlays and components: tokens, TLS, images, Metacontroller and
policies.
"""

import re
import shutil
import subprocess
from copy import deepcopy
from itertools import permutations
from pathlib import Path
from urllib.parse import urlsplit

import kubernetes_validate
import pytest
import yaml

from crds.kubernetes_schema import KUBERNETES
from hooks.version import VERSION
from tapp.words import vocabulary
from tests.contract.installed_manifests import (
    COMPONENTS,
    DECORATOR,
    HOOKS,
    built_in,
    environment,
    webhooks,
)
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

POLICIES = "components/admission-policies"


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
