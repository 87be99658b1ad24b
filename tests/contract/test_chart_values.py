"""Tests the values of the chart: their effects, and the errors for wrong ones."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.service import metrics
from hooks.service.settings import Settings
from release.kustomize import INSTALL
from tests.contract.chart_values import ALL, NAMES, pod_template, variables_of
from tests.contract.charts import camel, controller_arguments, only, templated, tools, unpacked
from tests.contract.charts import installed as rendered
from tests.sizes import FULL


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of the chart; the CRD has a schema only in a full run."""
    with tools():
        yield unpacked(tmp_path_factory.mktemp("chart"), stub=not FULL)


TLS, TOKEN = "components.tlsCertManager=true", "components.bearerToken=true"
WATCHED = "components.monitoring=true"
WITH_METACONTROLLER = "metacontroller.enabled=true"
LEAST = INSTALL / "overlays" / "least-privilege" / "cluster-role.yaml"
MONITORS = {"ServiceMonitor", "PodMonitor", "PrometheusRule"}


# --- image, replicas, resources -------------------------------------------------------------------


def test_values_set_the_fields_that_they_name(directory: Path) -> None:
    resources = {"requests": {"cpu": "1", "memory": "2Gi"}}
    made = rendered(
        directory,
        'image="other.example:5000/hooks:7"',
        "replicas=5",
        f"resources={json.dumps({**resources, 'limits': None})}",
        'metacontrollerNamespace="elsewhere"',
        namespace="ours",
    )
    deployment = only(made, "Deployment")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "other.example:5000/hooks:7"
    assert container["resources"]["requests"] == resources["requests"]
    assert deployment["spec"]["replicas"] == 5
    allowed = only(made, "NetworkPolicy")["spec"]["ingress"][0]["from"][0]["namespaceSelector"]
    assert allowed == {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}
    assert {each["metadata"].get("namespace", "ours") for each in made} == {"ours"}
    for hook in only(made, "CompositeController")["spec"]["hooks"].values():
        assert hook["webhook"]["url"].startswith("http://tapp-hooks.ours.svc:8080/")


def test_values_have_their_effect_together_with_all_components(directory: Path) -> None:
    """Sets an image, replicas, resources and a namespace while all components are enabled.

    A component may change the fields next to a value, and must not remove the value.
    """
    on = [f"components.{camel(name)}=true" for name in NAMES if name != "hpa-hook"]
    values = ['image="other:7"', "replicas=5", 'metacontrollerNamespace="elsewhere"', *on]
    made = rendered(directory, *values, 'resources={"limits": null, "requests": {"cpu": "3"}}')
    spec = only(made, "Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert spec["replicas"] == 5
    assert container["image"] == "other:7"
    assert container["resources"]["requests"]["cpu"] == "3"
    policy = yaml.safe_dump(only(made, "NetworkPolicy"))
    assert policy.count("kubernetes.io/metadata.name: elsewhere") == 1
    assert "kubernetes.io/metadata.name: metacontroller" not in policy


@pytest.mark.parametrize("monitoring", [False, True], ids=["base", "monitoring"])
def test_only_pods_of_metacontroller_are_admitted_in_any_namespace(
    directory: Path, monitoring: bool
) -> None:
    made = rendered(
        directory,
        "components.onlyMetacontroller=true",
        f"components.monitoring={json.dumps(monitoring)}",
        "metacontroller.enabled=true",
        namespace="ours",
    )
    (policy,) = (each for each in made if each["kind"] == "NetworkPolicy")
    first, *others = policy["spec"]["ingress"][0]["from"]
    namespace = {"kubernetes.io/metadata.name": "ours"}
    assert first["namespaceSelector"] == {"matchLabels": namespace}
    labels = only(made, "StatefulSet")["spec"]["template"]["metadata"]["labels"]
    (expression,) = first["podSelector"]["matchExpressions"]
    assert labels[expression["key"]] in expression["values"]
    assert len(others) == monitoring


# --- scheduling and labels of the pods ------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("imagePullSecrets", [{"name": "registry"}, {"name": "other"}]),
        ("tolerations", [{"key": "infra", "operator": "Exists", "effect": "NoSchedule"}]),
        ("priorityClassName", "system-cluster-critical"),
    ],
    ids=["imagePullSecrets", "tolerations", "priorityClassName"],
)
@pytest.mark.parametrize("more", [(), ALL], ids=["base", "all"])
def test_scheduling_values_reach_the_pod(
    directory: Path, key: str, value: Any, more: tuple[str, ...]
) -> None:
    before = pod_template(rendered(directory, *more))["spec"]
    assert key not in before
    assert pod_template(rendered(directory, *more, f"{key}={json.dumps(value)}"))["spec"] == {
        **before, key: value,
    }  # fmt: skip


def test_pod_labels_and_annotations_reach_only_the_pod_template(directory: Path) -> None:
    before = rendered(directory)
    made = rendered(directory, 'podLabels={"team":"a", "y":"1"}', 'podAnnotations={"b/c":"true"}')
    template = pod_template(made)
    assert template["metadata"]["annotations"] == {"b/c": "true"}
    assert template["metadata"]["labels"] == {
        "app.kubernetes.io/name": "tapp-hooks", "team": "a", "y": "1"
    }  # fmt: skip
    template["metadata"] = pod_template(before)["metadata"]
    assert made == before


@pytest.mark.parametrize("more", [(), (TLS,)], ids=["http", "https"])
def test_monitoring_labels_reach_monitors_and_rules(directory: Path, more: tuple[str, ...]) -> None:
    before = rendered(directory, WATCHED, *more)
    made = rendered(directory, WATCHED, *more, 'monitoring.labels={"release":"prometheus"}')
    assert {each["kind"] for each in made if each not in before} == MONITORS
    for each in made:
        if each["kind"] in MONITORS:
            assert each["metadata"]["labels"].pop("release") == "prometheus"
    assert made == before


def test_autoscaler_in_the_documentation_uses_an_existing_metric(
    directory: Path, tmp_path: Path
) -> None:
    """Renders the values that docs/sizing.md prints: their metric is one that the service
    exports.
    """
    page = (INSTALL.parent / "docs" / "sizing.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(components: {hpaHook: true}\n.*?)```", page, re.DOTALL)
    file = tmp_path / "values.yaml"
    file.write_text(text)
    made = rendered(directory, flags=("--values", file))
    scaled = only(made, "HorizontalPodAutoscaler")["spec"]
    assert scaled["metrics"] == yaml.safe_load(text)["autoscaling"]["metrics"]
    (metric,) = [each["pods"]["metric"]["name"] for each in scaled["metrics"]]
    assert metric == metrics.IN_FLIGHT._name
    assert scaled["minReplicas"] == 2
    assert scaled["maxReplicas"] == 6


def test_values_set_spread_disruption_budget_and_autoscaling(directory: Path) -> None:
    by_load = {"type": "Pods", "pods": {"metric": {"name": "tapp_hook_requests_in_flight"}}}
    spread = [{"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]
    made = rendered(
        directory,
        "components.hpaHook=true",
        f"autoscaling={json.dumps({'minReplicas': 3, 'maxReplicas': 9, 'metrics': [by_load]})}",
        'podDisruptionBudget.maxUnavailable="50%"',
        f"topologySpreadConstraints={json.dumps(spread)}",
    )
    scaled = only(made, "HorizontalPodAutoscaler")["spec"]
    assert scaled["minReplicas"] == 3
    assert scaled["maxReplicas"] == 9
    assert scaled["metrics"] == [by_load]
    assert only(made, "PodDisruptionBudget")["spec"]["maxUnavailable"] == "50%"
    assert pod_template(made)["spec"]["topologySpreadConstraints"] == spread
    bare = pod_template(rendered(directory, "topologySpreadConstraints=[]"))["spec"]
    assert "topologySpreadConstraints" not in bare


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {
            "TAPP_TOLERATION_SECONDS": "60",
            "TAPP_MEMO_BYTES": 1073741824,
            "TAPP_DELETE_POD_AFTER_APP_FINISH": False,
            "TAPP_LOG_LEVEL": "debug",
            "WEB_CONCURRENCY": 4,
            "HOST": "[::]",
        },
        {"TAPP_TOLERATION_SECONDS": 60, "TAPP_MEMO_BYTES": 0},
    ],
    ids=["many", "numbers"],
)
@pytest.mark.parametrize("more", [(), ALL], ids=["base", "all"])
def test_settings_replace_those_of_the_manifests_or_are_added(
    directory: Path, settings: dict[str, Any], more: tuple[str, ...], tmp_path: Path
) -> None:
    """Sets environment variables of the service as JSON, by `--set`, and in a file: the result is
    the same.
    """
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in settings.items()
    }
    wanted = variables_of(rendered(directory, *more)) | texts
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"settings": settings}))
    by_json = [f"settings.{name}={json.dumps(value)}" for name, value in settings.items()]
    by_text = [f"settings.{name}={text}" for name, text in texts.items()]
    for flags in (
        [word for each in by_json for word in ("--set-json", each)],
        [word for each in by_text for word in ("--set", each)],
        ["--values", file],
    ):
        assert variables_of(rendered(directory, *more, flags=flags)) == wanted


def test_every_setting_of_the_service_can_be_set_or_is_refused_with_a_reason(
    directory: Path,
) -> None:
    schema = json.loads((directory / "values.schema.json").read_text())
    known = schema["properties"]["settings"]["properties"]
    assert {f"TAPP_{name.upper()}" for name in Settings.model_fields} <= {*known}
    for name, field in known.items():
        if not field:
            done = templated(directory, f'settings.{name}="x"')
            assert re.search(rf"settings\.{name} (is set by|names what)", done.stderr), name


@pytest.mark.parametrize("name", ["TAPP_LOG_LEVEL", "WEB_CONCURRENCY", "TAPP_MEMO_BYTES"])
def test_setting_can_be_removed(directory: Path, name: str) -> None:
    """A null removes a setting that comes from the manifests, or from an earlier file of values."""
    given = ("--set", f"settings.{name}=1") if name == "TAPP_MEMO_BYTES" else ()
    assert name in variables_of(rendered(directory, flags=given))
    assert name not in variables_of(
        rendered(directory, flags=(*given, "--set", f"settings.{name}=null"))
    )


# --- token and certificate ------------------------------------------------------------------------


def test_token_is_read_from_the_named_secret(directory: Path) -> None:
    """`auth.secretName` replaces the name of the Secret in the service and in every
    registration.
    """
    on = (TOKEN, "components.podStatus=true", TLS)
    before, after = rendered(directory, *on), rendered(directory, *on, 'auth.secretName="mine"')
    assert json.dumps(before).count("tapp-hooks-token") == 5
    assert json.loads(json.dumps(before).replace("tapp-hooks-token", "mine")) == after


def test_certificate_comes_from_the_named_issuer(directory: Path) -> None:
    issuer = '{"kind": "ClusterIssuer", "name": "company"}'
    before = rendered(directory, *ALL)
    made = rendered(directory, *ALL, f"tls.issuer={issuer}")
    certificate = only(made, "Certificate")
    assert certificate["metadata"]["name"] == "tapp-hooks"
    assert certificate["spec"].pop("issuerRef") == {
        "group": "cert-manager.io", "kind": "ClusterIssuer", "name": "company",
    }  # fmt: skip
    del only(before, "Certificate", "tapp-hooks")["spec"]["issuerRef"]
    authority = [("Issuer", "tapp-hooks-ca"), ("Issuer", "tapp-hooks-selfsigned")]
    gone = [each for each in before if each not in made]
    assert sorted((each["kind"], each["metadata"]["name"]) for each in gone) == [
        ("Certificate", "tapp-hooks-ca"), *authority,
    ]  # fmt: skip
    assert [each for each in made if each not in before] == []


def test_existing_certificate_can_be_used_without_cert_manager(directory: Path) -> None:
    before = rendered(directory, *ALL)
    made = rendered(directory, *ALL, 'tls.secretName="mine"')
    theirs = ("Certificate", "Issuer")
    assert not [each for each in made if each["kind"] in theirs]
    rest = json.dumps([each for each in before if each["kind"] not in theirs])
    assert rest.count("tapp-hooks-tls") == 6
    assert json.loads(rest.replace("tapp-hooks-tls", "mine")) == made


# --- Metacontroller -------------------------------------------------------------------------------


def test_metacontroller_can_be_installed_with_the_chart(directory: Path) -> None:
    """Metacontroller in the chart has the arguments of its overlay and the least privileges.

    The network policy admits the namespace of the chart.
    """
    made = rendered(directory, "metacontroller.enabled=true")
    data = only(made, "ConfigMap")["data"]
    assert json.loads(data["arguments"]) == controller_arguments()
    assert json.loads(data["rules"]) == yaml.safe_load(LEAST.read_text())["rules"]
    allowed = only(made, "NetworkPolicy")["spec"]["ingress"][0]["from"][0]["namespaceSelector"]
    assert allowed == {"matchLabels": {"kubernetes.io/metadata.name": "tapp-system"}}
    assert not [each for each in rendered(directory) if each["kind"] == "ConfigMap"]


@pytest.mark.parametrize("component", [TOKEN, TLS], ids=["token", "TLS"])
def test_installed_metacontroller_may_read_the_secrets_with_token_and_ca(
    directory: Path, component: str
) -> None:
    """With a token or TLS, the chart lets its Metacontroller read Secrets; otherwise it could sync
    no TApp.

    An existing Metacontroller has its own rights.
    """
    made = rendered(directory, WITH_METACONTROLLER, component, namespace="ours")
    (rule,) = only(made, "ClusterRole", "metacontroller-secrets")["rules"]
    assert rule == {"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "watch"]}
    bound = only(made, "ClusterRoleBinding", "metacontroller-secrets")
    assert bound["roleRef"]["name"] == "metacontroller-secrets"
    assert bound["subjects"] == [
        {"kind": "ServiceAccount", "name": "theirs", "namespace": "ours"}
    ]  # fmt: skip
    for without in ((WITH_METACONTROLLER,), (component,)):
        assert "metacontroller-secrets" not in json.dumps(rendered(directory, *without))


def test_monitor_of_metacontroller_has_its_namespace_and_port(directory: Path) -> None:
    """The PodMonitor selects Metacontroller's namespace, and adds the port to each pod's address.

    The chart of Metacontroller declares no port.
    """
    made = rendered(directory, WATCHED, 'metacontrollerNamespace="else"')
    spec = only(made, "PodMonitor")["spec"]
    assert spec["namespaceSelector"] == {"matchNames": ["else"]}
    made = rendered(directory, WATCHED, WITH_METACONTROLLER, namespace="ours")
    spec = only(made, "PodMonitor")["spec"]
    assert spec["namespaceSelector"] == {"matchNames": ["ours"]}
    (endpoint,) = spec["podMetricsEndpoints"]
    assert "port" not in endpoint
    found = [
        re.fullmatch(rule["regex"], address)
        and re.sub(rule["regex"], rule["replacement"].replace("$1", r"\1"), address)
        for address in ("10.0.0.7", "fd00::7")
        for rule in endpoint["relabelings"]
    ]
    assert found == ["10.0.0.7:9999", None, None, "[fd00::7]:9999"]


@pytest.mark.parametrize("namespace", ["123", "1e3", "on", "null"])
def test_namespace_name_that_yaml_reads_as_another_type_is_quoted(
    directory: Path, namespace: str
) -> None:
    for each in rendered(directory, *ALL, namespace=namespace):
        assert each["metadata"].get("namespace", namespace) == namespace


# --- wrong values ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ('image=""', "image is not set: name the hook service's image, --set image.registry"),
        ('image="registry.example.com/tapp-hooks"', "'/image'"),
        ("replicas=0", "'/replicas'"),
        ("components.podstatus=true", "additional properties 'podstatus' not allowed"),
        ('components.podStatus="yes"', "'/components/podStatus'"),
        ("replica=1", "additional properties 'replica' not allowed"),
        ('imagePullSecrets=["registry"]', "'/imagePullSecrets/0'"),
        ('nodeSelector={"disk":true}', "'/nodeSelector/disk': got boolean, want string"),
        ('tolerations=[{"effects":"NoSchedule"}]', "additional properties 'effects' not allowed"),
        ('affinity={"podAffinities":{}}', "additional properties 'podAffinities' not allowed"),
        ('podLabels={"app.kubernetes.io/name":"x"}', "app.kubernetes.io/name is the chart's own"),
        (
            f'{WATCHED} monitoring.labels={{"app.kubernetes.io/name":"x"}}',
            "monitoring.labels.app.kubernetes.io/name is the chart's own",
        ),
        (
            'settings.TAPP_TOLERATION_SECOND="1"',
            "additional properties 'TAPP_TOLERATION_SECOND' not allowed",
        ),
        ("settings.TAPP_MAX_BODY_BYTES=1", "minimum: got 1, want 1,024"),
        ('settings.TAPP_MEMO_BYTES="64M"', "'/settings/TAPP_MEMO_BYTES': '64M' does not match"),
        ('settings.TAPP_DELETE_POD_AFTER_APP_FINISH="no"', "must be one of true, false"),
        ('settings.TAPP_LOG_LEVEL="verbose"', "'/settings/TAPP_LOG_LEVEL'"),
        ('settings.TAPP_EVENTS="true"', "settings.TAPP_EVENTS is set by components.events"),
        ('auth.secretName="mine"', "auth is set, but without effect"),
        ("tls=null", "missing property 'tls'"),
        (f"{TOKEN} auth.secretName=null", "at '/auth': missing property 'secretName'"),
        (
            f'{TOKEN} settings.TAPP_AUTH_TOKEN_FILE="/x"',
            "settings.TAPP_AUTH_TOKEN_FILE is set by components.bearerToken",
        ),
        ('settings.TAPP_TLS_KEY_FILE="/x"', "is set by components.tlsCertManager"),
        ("settings.PORT=9000", "settings.PORT is set by components.tlsCertManager"),
        ('settings.TAPP_TLS_CLIENT_CA_FILE="/x"', "does not mount: use extraVolumes"),
        (f'{TOKEN} auth.secretName=""', "'/auth/secretName': minLength"),
        (f'{TLS} tls.issuer={{"kind":"ClusterIssuer"}}', "tls.issuer has no name"),
        (
            f'{TLS} tls.issuer.name="company" tls.secretName="mine"',
            "tls.secretName and tls.issuer are both set",
        ),
        ('tls.secretName="mine"', "tls is set, but without effect: add --set components.tlsCert"),
    ],
)
def test_wrong_value_is_refused_with_its_name(directory: Path, value: str, error: str) -> None:
    done = templated(directory, *value.split(" "))
    assert done.returncode != 0
    assert error in done.stderr
