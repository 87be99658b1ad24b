"""A release: its chart makes the objects that kustomize makes, and what it lacks is said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.version import VERSION
from release import chart, metacontroller
from release.__main__ import main
from release.kustomize import components, composed, parts
from release.variants import camel, condition, key_of
from tests.contract.theirs import chart_in
from tests.e2e.binaries import build as binaries

Document = dict[str, Any]
IMAGE = "registry.example.com/tapp-hooks:0.1.0"
ROOT = Path(__file__).parents[2]
NAMES = components()
LOCKS = ("bearer-token", "pod-status", "tls-cert-manager")
TABLE = [(), *[(name,) for name in NAMES], LOCKS, ("hpa-hook", "tls-cert-manager"), tuple(NAMES)]


@pytest.fixture(scope="module", autouse=True)
def tools() -> Iterator[None]:
    """Has kubectl and helm, from PATH or as the end-to-end tests built them."""
    built = [str(binaries.bin_dir()), str(binaries.helm().bin_dir)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([os.environ["PATH"], *built]))
        for tool in ("kubectl", "helm"):
            if shutil.which(tool) is None:
                pytest.skip(f"there is no {tool}: `make e2e-binaries` builds one")
        yield


@pytest.fixture(scope="module")
def their_chart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What stands in for Metacontroller's own chart."""
    return chart_in(tmp_path_factory.mktemp("theirs"))


@pytest.fixture(scope="module")
def directory(tools: None, tmp_path_factory: pytest.TempPathFactory, their_chart: Path) -> Path:
    """The chart, not packed."""
    assert tools is None
    place = tmp_path_factory.mktemp("chart") / "tapp"
    made = chart.files(VERSION, IMAGE, metacontroller.REPOSITORY, metacontroller.version())
    for name, text in made.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    metacontroller.add_chart("helm", place, {"METACONTROLLER_CHART": str(their_chart)})
    return place


def helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """helm, to its end."""
    return subprocess.run(["helm", *arguments], capture_output=True, text=True, check=False)


def rendered(directory: Path, *values: str, namespace: str = "tapp-system") -> list[Document]:
    """What `helm template` makes of the chart with these values."""
    flags = [word for value in values for word in ("--set-json", value)]
    place = ("--namespace", namespace, "--kube-version", "1.36.0")
    done = helm("template", "tapp", directory, *place, *flags)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]


def comparable(value: Any) -> Any:
    """A value in which no order counts that Kubernetes does not look at: that of named items."""
    if isinstance(value, dict):
        return {key: comparable(each) for key, each in value.items() if key != chart.POLICY}
    if isinstance(value, list):
        items = [comparable(each) for each in value]
        named = all(isinstance(each, dict) and "name" in each for each in items)
        return sorted(items, key=lambda each: str(each["name"])) if named else items
    return value


def by_key(documents: list[Document]) -> dict[tuple[str, ...], Any]:
    """The objects by what they are found by; an annotation of Helm's alone counts as none."""
    found = {key_of(each): comparable(each) for each in documents if each["kind"] != "Namespace"}
    for each in found.values():
        if each["metadata"].get("annotations") == {}:
            del each["metadata"]["annotations"]
    return found


def only(documents: list[Document], kind: str) -> Document:
    """The one object of a kind."""
    (found,) = [each for each in documents if each["kind"] == kind]
    return found


# --- one source -----------------------------------------------------------------------------------


@pytest.mark.parametrize("names", TABLE, ids=lambda names: "+".join(names) or "base")
def test_the_chart_makes_what_kustomize_makes(directory: Path, names: tuple[str, ...]) -> None:
    """Object by object, with any components; the Namespace is Helm's affair."""
    values = [f"components.{camel(name)}=true" for name in names]
    found, wanted = by_key(rendered(directory, *values)), by_key(composed(names, IMAGE))
    assert sorted(found) == sorted(wanted)
    for key, document in wanted.items():
        assert found[key] == document, key


def test_helm_finds_no_fault(directory: Path) -> None:
    done = helm("lint", "--strict", directory)
    assert done.returncode == 0, done.stdout


def test_no_component_is_left_out_of_values_and_schema(directory: Path) -> None:
    values = yaml.safe_load((directory / "values.yaml").read_text())
    schema = json.loads((directory / "values.schema.json").read_text())
    assert [*values["components"]] == [camel(name) for name in NAMES]
    assert {*schema["properties"]["components"]["properties"]} == {*values["components"]}
    assert {*schema["properties"]} - {"global"} == {*values}


def test_a_place_on_which_too_many_components_act_is_refused() -> None:
    """Rather than to be wrong in the one combination that nobody built."""
    among = [frozenset(each) for each in ((), "a", "b", "c", "ab", "ac", "bc", "abc")]
    assert condition(lambda one: "a" in one and "b" in one, among, True) == (
        "and .Values.components.a .Values.components.b"
    )
    assert condition(bool, among[:3] + among[4:5], True) == (
        "or .Values.components.a .Values.components.b"
    )
    with pytest.raises(Exception, match="too many components"):
        condition(bool, among[:7], True)


# --- values ---------------------------------------------------------------------------------------


def test_values_reach_what_they_are_called_after(directory: Path) -> None:
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
        assert hook["webhook"]["url"].startswith("http://tapp-hooks.ours:8080/")


def test_values_are_not_lost_where_components_act_as_well(directory: Path) -> None:
    """The same places, with everything switched on that may change what is around them."""
    on = [f"components.{camel(name)}=true" for name in NAMES if name != "hpa-hook"]
    values = ['image="other:7"', "replicas=5", 'metacontrollerNamespace="elsewhere"', *on]
    made = rendered(directory, *values, 'resources={"limits": null, "requests": {"cpu": "3"}}')
    spec = only(made, "Deployment")["spec"]
    (container,) = spec["template"]["spec"]["containers"]
    assert (spec["replicas"], container["image"]) == (5, "other:7")
    assert container["resources"]["requests"]["cpu"] == "3"
    policy = yaml.safe_dump(only(made, "NetworkPolicy"))
    assert policy.count("kubernetes.io/metadata.name: elsewhere") == 1
    assert "kubernetes.io/metadata.name: metacontroller" not in policy


def test_metacontroller_comes_with_it_where_that_is_wanted(directory: Path) -> None:
    """With the arguments of its overlay, the least privileges, and let in by the NetworkPolicy."""
    made = rendered(directory, "metacontroller.enabled=true")
    data = only(made, "ConfigMap")["data"]
    assert json.loads(data["arguments"]) == chart.controller_arguments()
    assert json.loads(data["rules"]) == yaml.safe_load(chart.LEAST.read_text())["rules"]
    allowed = only(made, "NetworkPolicy")["spec"]["ingress"][0]["from"][0]["namespaceSelector"]
    assert allowed == {"matchLabels": {"kubernetes.io/metadata.name": "tapp-system"}}
    assert not [each for each in rendered(directory) if each["kind"] == "ConfigMap"]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('image=""', "image is not set: name the hook service's image, --set image=registry"),
        ('image="registry.example.com/tapp-hooks"', "'/image'"),
        ("replicas=0", "'/replicas'"),
        ("components.podstatus=true", "additional properties 'podstatus' not allowed"),
        ('components.podStatus="yes"', "'/components/podStatus'"),
        ("replica=1", "additional properties 'replica' not allowed"),
    ],
)
def test_a_wrong_value_is_refused_by_name(directory: Path, value: str, why: str) -> None:
    done = helm("template", "tapp", directory, "--set-json", value)
    assert done.returncode != 0
    assert why in done.stderr


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), f"make release VERSION={VERSION} IMAGE=registry.example.com/tapp-hooks"),
        (("--version", VERSION), "a release needs its version and the image that it installs"),
        (
            ("--version", "9.9.9", "--image", IMAGE),
            f"VERSION=9.9.9, but the service says {VERSION}",
        ),
        (("--version", VERSION, "--image", "set-the-image.invalid/tapp-hooks"), "can be pulled"),
        (("--version", VERSION, "--image", "Not An Image"), "is no image that can be pulled"),
    ],
)
def test_what_is_missing_is_said_in_a_sentence(
    arguments: tuple[str, ...], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--dist", str(tmp_path / "dist")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert why in said
    assert said.count("\n") == 1
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("missing", ["kubectl", "helm"])
def test_a_machine_without_its_tools_is_told_where_they_come_from(
    missing: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = {"kubectl": "helm", "helm": "kubectl"}[missing]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / other).symlink_to(str(shutil.which(other)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    dist = str(tmp_path / "dist")
    assert main(["--version", VERSION, "--image", IMAGE, "--dist", dist]) == 1
    said = capsys.readouterr().err
    assert missing in said
    assert "is on PATH" in said or "is not on PATH" in said
    assert "make e2e-binaries" in said


def test_without_a_network_metacontrollers_parts_are_asked_for(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told: where they should have come from, and which setting takes a checkout instead."""
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with pytest.raises(metacontroller.ReleaseError) as refused:
        metacontroller.manifests({})
    assert "github.com/metacontroller" in str(refused.value)
    assert "METACONTROLLER_MANIFESTS" in str(refused.value)
    copy = shutil.copytree(directory, tmp_path / "tapp", ignore=shutil.ignore_patterns("charts"))
    with pytest.raises(metacontroller.ReleaseError) as refused:
        metacontroller.add_chart("helm", Path(copy), {})
    assert metacontroller.REPOSITORY in str(refused.value)
    assert "METACONTROLLER_CHART" in str(refused.value)


def test_another_version_of_metacontroller_is_refused(directory: Path, their_chart: Path) -> None:
    other = their_chart.parent / "other"
    shutil.copytree(their_chart, other)
    described = yaml.safe_load((other / "Chart.yaml").read_text())
    (other / "Chart.yaml").write_text(yaml.safe_dump({**described, "version": "1.2.3"}))
    with pytest.raises(
        metacontroller.ReleaseError, match=r"is not Metacontroller's chart .*1\.2\.3"
    ):
        metacontroller.add_chart("helm", directory, {"METACONTROLLER_CHART": str(other)})


@pytest.mark.parametrize(
    ("image", "split"),
    [
        ("a/b:1", {"newName": "a/b", "newTag": "1"}),
        ("r.example:5000/b", {"newName": "r.example:5000/b"}),
        ("r.example:5000/b:1", {"newName": "r.example:5000/b", "newTag": "1"}),
        ("b:1", {"newName": "b", "newTag": "1"}),
        ("a/b@sha256:0", {"newName": "a/b", "digest": "sha256:0"}),
    ],
)
def test_an_image_is_split_as_kustomize_wants_it(image: str, split: dict[str, str]) -> None:
    assert parts(image) == split


# --- the forge ------------------------------------------------------------------------------------


class TestWorkflow:
    FILE = ROOT / ".github" / "workflows" / "release.yaml"
    JOB: Document = yaml.safe_load(FILE.read_text())["jobs"]["release"]
    SCRIPT = "\n".join(step.get("run", "") for step in JOB["steps"])

    def test_actions_are_pinned_to_a_commit(self) -> None:
        """With the version as a comment, for whoever raises it."""
        used = re.findall(r"uses: (.+)", self.FILE.read_text())
        assert len(used) == 2
        for each in used:
            assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)

    def test_runs_for_tags_with_no_more_rights_than_it_needs(self) -> None:
        whole = yaml.safe_load(self.FILE.read_text())
        assert whole[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
        assert whole["permissions"] == {"contents": "read"}
        assert self.JOB["permissions"] == {"contents": "write", "packages": "write"}

    def test_tests_before_it_publishes_and_names_the_image_by_its_digest(self) -> None:
        steps = ["make lint test", "docker buildx build", "make release", "helm push", "gh release"]
        assert sorted(steps, key=self.SCRIPT.index) == steps
        assert "IMAGE=$PLACE/tapp-hooks@$digest" in self.SCRIPT
        assert "dist/tapp-$VERSION.tgz" in self.SCRIPT

    def test_nothing_from_outside_is_pasted_into_a_script(self) -> None:
        assert "${{" not in self.SCRIPT
