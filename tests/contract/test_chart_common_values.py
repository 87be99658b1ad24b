"""Tests the values that most charts have: scheduling, images, security contexts, names and
subcharts.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.contract.chart_values import ALL, pod_template, variables_of
from tests.contract.charts import installed as rendered
from tests.contract.charts import only, tools, unpacked
from tests.sizes import FULL


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yields the directory of the chart; the CRD has a schema only in a full run."""
    with tools():
        yield unpacked(tmp_path_factory.mktemp("chart"), stub=not FULL)


DIGEST = f"sha256:{'0' * 64}"


def test_node_selector_and_affinity_are_added_to_those_of_the_chart(directory: Path) -> None:
    more = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}
    made = pod_template(
        rendered(directory, 'nodeSelector={"disk":"ssd"}', f"affinity={json.dumps(more)}")
    )["spec"]
    assert made["nodeSelector"] == {"kubernetes.io/os": "linux", "disk": "ssd"}
    assert {*made["affinity"]} == {"podAffinity", "podAntiAffinity"}
    none = pod_template(rendered(directory, "affinity=null", "nodeSelector=null"))["spec"]
    assert not {"affinity", "nodeSelector"} & {*none}


@pytest.mark.parametrize(
    ("values", "image"),
    [
        (('image.registry="r.example:5000"', 'image.repository="a/b"'), "r.example:5000/a/b:0.1.0"),
        (('global.imageRegistry="mirror.example"',), "mirror.example/tapp-hooks:0.1.0"),
        ((f'image.digest="{DIGEST}"',), f"registry.example.com/tapp-hooks@{DIGEST}"),
        (('image.registry=""', 'image.repository="b"', 'image.tag="7"'), "b:7"),
        (('image="as/before:7"',), "as/before:7"),
    ],
    ids=["registry", "global", "digest", "no registry", "string"],
)
def test_image_is_composed_of_registry_repository_tag_and_digest(
    directory: Path, values: tuple[str, ...], image: str
) -> None:
    made = rendered(directory, *values)
    assert pod_template(made)["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize(
    ("key", "place"),
    [("podSecurityContext", "spec"), ("securityContext", "container")],
    ids=["pod", "container"],
)
def test_security_context_can_be_set_or_removed(directory: Path, key: str, place: str) -> None:
    """A value sets or removes the security context of the pod or the container.

    By default there is no user ID, because OpenShift sets its own and the image has one.
    """

    def found(*values: str) -> Any:
        spec = pod_template(rendered(directory, *ALL, *values))["spec"]
        return (spec if place == "spec" else spec["containers"][0]).get("securityContext")

    assert found() is not None
    assert not {"runAsUser", "runAsGroup", "fsGroup"} & {*found()}
    assert found(f'{key}={{"runAsUser":1000}}')["runAsUser"] == 1000
    assert found(f"{key}=null") is None


@pytest.mark.parametrize("more", [(), ALL], ids=["base", "all"])
def test_environment_variables_and_volumes_can_be_added(
    directory: Path, more: tuple[str, ...]
) -> None:
    variable = {"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}
    volume, mount = {"name": "ca", "configMap": {"name": "ca"}}, {"name": "ca", "mountPath": "/ca"}
    before = pod_template(rendered(directory, *more))["spec"]
    made = pod_template(
        rendered(
            directory,
            *more,
            f"extraEnv={json.dumps([variable])}",
            f"extraVolumes={json.dumps([volume])}",
            f"extraVolumeMounts={json.dumps([mount])}",
        )
    )["spec"]
    (container,), (earlier,) = made["containers"], before["containers"]
    assert container["env"] == [*earlier["env"], variable]
    assert container["volumeMounts"] == [*earlier["volumeMounts"], mount]
    assert made["volumes"] == [*before["volumes"], volume]


def test_name_override_and_common_labels_reach_every_object(directory: Path) -> None:
    """Sets another name and labels for all objects: references to the service have the new name,
    and selectors do not change.
    """
    more = ('fullnameOverride="mine"', 'commonLabels={"team":"a"}')
    before, made = rendered(directory, *ALL), rendered(directory, *ALL, *more)
    assert len(made) == len(before)
    for each in made:
        theirs = each["kind"] == "ConfigMap" and each["metadata"]["name"] == "metacontroller"
        assert theirs or each["metadata"]["labels"]["team"] == "a", each["kind"]
    text = json.dumps([each for each in made if each["kind"] != "ConfigMap"])
    assert "http://tapp-hooks." not in text
    assert "https://mine.tapp-system.svc:8443/sync" in text
    assert only(made, "ServiceMonitor")["spec"]["endpoints"][0]["tlsConfig"]["serverName"] == (
        "mine.tapp-system.svc"
    )
    assert json.dumps('job="mine"')[1:-1] in text
    assert only(made, "Certificate", "mine")["spec"]["dnsNames"][0] == "mine.tapp-system.svc"
    selector = {"app.kubernetes.io/name": "tapp-hooks"}
    assert only(made, "Deployment")["spec"]["selector"] == {"matchLabels": selector}
    assert only(made, "Service")["spec"]["selector"] == selector


def test_service_supports_ipv4_and_ipv6(directory: Path) -> None:
    made = rendered(directory)
    assert only(made, "Service")["spec"]["ipFamilyPolicy"] == "PreferDualStack"
    assert variables_of(made)["HOST"] == "::"


@pytest.mark.parametrize("alias", ["tapp", "workloads"])
def test_chart_works_as_a_subchart(directory: Path, alias: str, tmp_path: Path) -> None:
    """Renders the chart as a dependency of another chart, under its own name or an alias.

    The values enable shards, whose Metacontrollers use the template of another subchart.
    """
    mother = tmp_path / "mother"
    (mother / "charts").mkdir(parents=True)
    shutil.copytree(directory, mother / "charts" / "tapp")
    own = {"apiVersion": "v2", "name": "mother", "version": "1.0.0"}
    needed = {"name": "tapp", "version": "0.1.0", "alias": alias, "condition": f"{alias}.enabled"}
    (mother / "Chart.yaml").write_text(yaml.safe_dump({**own, "dependencies": [needed]}))
    values = {
        "enabled": True,
        "metacontroller": {"enabled": True},
        "components": {"shards": True},
        "shards": ["b"],
    }
    shared = {"imageRegistry": "mirror.example"}
    (mother / "values.yaml").write_text(yaml.safe_dump({alias: values, "global": shared}))
    made = rendered(mother)
    assert pod_template(made)["spec"]["containers"][0]["image"] == "mirror.example/tapp-hooks:0.1.0"
    names = {each["metadata"]["name"] for each in made if each["kind"] == "StatefulSet"}
    assert names == {"tapp-metacontroller", "tapp-metacontroller-b"}
