"""Tests that requests, limits and settings are the same in manifests, chart, code and
documentation.
"""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.service.settings import Settings
from release.kustomize import INSTALL, ROOT, build, components, composed
from tests.contract.charts import only, rendered, tools, unpacked
from tests.contract.pages import rows, section

BENCH = ROOT / "tests" / "bench" / "README.md"
SIZE, VALUES = ROOT / "docs" / "sizing.md", ROOT / "charts" / "tapp" / "values.yaml"
DEFAULTS = Settings()
UNITS = {"KB": 1000, "MB": 1000**2, "GB": 1000**3, "MiB": 1 << 20}
WORKLOADS = ("Deployment", "StatefulSet", "DaemonSet", "Job", "Pod")

Document = dict[str, Any]


def amount(text: str) -> float:
    """Returns the first amount of memory in a text, in bytes."""
    found = re.search(r"([\d.,]+) (KB|MB|GB|MiB)\b", text)
    assert found, text
    return float(found[1].replace(",", "")) * UNITS[found[2]]


def size(first: str, which: int = 0) -> str:
    """Returns the second cell of the row in docs/sizing.md, "Sizing", whose first cell begins with
    `first`.

    `which` is the index of the row if several rows match.
    """
    found = [cells[1] for cells in rows(section(SIZE, "Sizing")) if cells[0].startswith(first)]
    return found[which]


def parsed(quantity: str) -> float:
    """Returns a quantity of the manifests as a number: CPUs, or bytes."""
    found = re.fullmatch(r"(\d+)(m|Mi|Gi)?", quantity)
    assert found, quantity
    return int(found[1]) * {None: 1, "m": 1 / 1000, "Mi": 1 << 20, "Gi": 1 << 30}[found[2]]


def quantities(container: Document) -> tuple[float, float, float]:
    """Returns a container's request of CPU, its request of memory in bytes, and its limit of
    memory.
    """
    known = container["resources"]
    given = (known["requests"]["cpu"], known["requests"]["memory"], known["limits"]["memory"])
    cpu, memory, limit = (parsed(each) for each in given)
    return cpu, memory, limit


def service() -> Document:
    """Returns the container of the service in the base manifests."""
    deployment = only(build(INSTALL / "base"), "Deployment")
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return dict(found)


def metacontroller(overlay: str) -> Document:
    """Returns the container of Metacontroller in an overlay (`metacontroller` or `shard`)."""
    name = {"metacontroller": "arguments.yaml", "shard": "metacontroller.yaml"}[overlay]
    text = (INSTALL / "overlays" / overlay / name).read_text(encoding="utf-8")
    (found,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    return dict(found)


def workers() -> int:
    """Returns the number of worker processes in a pod of the service."""
    (found,) = [each["value"] for each in service()["env"] if each["name"] == "WEB_CONCURRENCY"]
    return int(found)


def process() -> float:
    """Returns the memory of the service without requests, in bytes, from docs/sizing.md."""
    alone, each = size("the process").split(", and ")
    return amount(alone) + workers() * amount(each)


def memory_of_request(body: float) -> float:
    """Returns the memory that the service needs for a request of `body` bytes, from
    docs/sizing.md.
    """
    row = size("each request of 10,000 pods")
    return body * amount(row) / (10_000 * amount(row.partition(";")[2]))


def test_memory_limit_of_the_service_covers_the_maximum_of_its_settings() -> None:
    """Compares the limit with the memory of workers that have full caches, a full queue and the
    largest bodies.
    """
    waiting = amount(size("requests that [wait]"))
    each = DEFAULTS.memo_bytes + waiting + memory_of_request(DEFAULTS.max_body_bytes)
    volumes = only(build(INSTALL / "base"), "Deployment")["spec"]["template"]["spec"]["volumes"]
    files = parsed(volumes[0]["emptyDir"]["sizeLimit"])
    assert files == amount(size("`/tmp`"))
    needed = process() + workers() * each + files
    assert needed <= quantities(service())[2] < 1.5 * needed


def test_resource_requests_of_the_service_cover_the_documented_load() -> None:
    """Compares the requests of the service with its need for 5,000 cached pods and requests of 500
    pods.

    The CPU request is enough for eight syncs of 1,000 pods in a second.
    """
    cpu, memory, _ = quantities(service())
    pods = amount(size("the cache of each worker"))
    each = 5_000 * pods + memory_of_request(500 * amount(size("each request").partition(";")[2]))
    assert 0.7 * memory < process() + workers() * each <= memory
    (row,) = [cells for cells in rows(BENCH.read_text(encoding="utf-8")) if cells[0] == "1,000"][:1]
    milliseconds = float(row[2].removesuffix(" ms"))
    assert 8 * milliseconds / 1000 == pytest.approx(cpu, rel=0.1)


def memory_of_metacontroller(pods: int, synced: int) -> float:
    """Returns the memory of Metacontroller in bytes, from docs/sizing.md.

    `pods` is the number of pods in the cluster, and `synced` the number of pods in syncs.
    """
    each, more = amount(size("each pod of the cluster")), amount(size("each pod of the TApps"))
    return amount(size("the process", 1)) + pods * each + synced * more


def test_memory_in_the_table_of_sizes_follows_the_rules() -> None:
    """Computes each row of the table by the rules of the page.

    One TApp has all pods, and each worker answers a request of all pods.
    """
    table = rows(section(SIZE, "How much for how many pods"))
    assert [cells[0] for cells in table] == ["50", "500", "2,000", "10,000"]
    cache, body = amount(size("the cache")), amount(size("each request").partition(";")[2])
    for first, _, of_service, of_metacontroller, *_ in table:
        pods = int(first.replace(",", ""))
        needed = process() + workers() * (pods * cache + memory_of_request(pods * body))
        assert amount(of_service) == pytest.approx(needed, rel=0.02)
        known = memory_of_metacontroller(pods, pods)
        assert amount(of_metacontroller) == pytest.approx(known, rel=0.02)


def test_memory_limit_of_metacontroller_covers_the_largest_documented_cluster() -> None:
    """Compares the limit with the memory for 50,000 pods in the cluster and the largest TApp that
    was tested.
    """
    cpu, memory, limit = quantities(metacontroller("metacontroller"))
    said = section(SIZE, "Where the end is")
    assert "50,000 pods take 3.3 GB in each" in said
    assert memory_of_metacontroller(50_000, 0) == pytest.approx(amount("3.3 GB"), rel=0.02)
    assert "2,000 with Metacontroller" in said
    assert (
        memory_of_metacontroller(50_000, 2_000)
        <= limit
        < 1.5 * memory_of_metacontroller(50_000, 2_000)
    )
    assert 0.7 * memory < memory_of_metacontroller(2_000, 500) <= memory
    assert cpu == 250 / 1000  # a millisecond for each pod


def test_requests_and_limits_are_the_same_in_all_files() -> None:
    """Compares the manifests, the overlay of a shard, the values of the chart, and the documented
    table.
    """
    values = yaml.safe_load(VALUES.read_text(encoding="utf-8"))
    assert values["resources"] == service()["resources"]
    known = metacontroller("metacontroller")["resources"]
    assert metacontroller("shard")["resources"] == known
    assert values["metacontroller"]["resources"] == known
    table = {cells[0]: cells[1:3] for cells in rows(section(SIZE, "Requests and limits"))}
    for name, resources in (("the service", service()["resources"]), ("Metacontroller", known)):
        (row,) = [row for first, row in table.items() if first.startswith(name)]
        given = [", ".join(f"{key} {value}" for key, value in resources[each].items())
                 for each in ("requests", "limits")]  # fmt: skip
        assert row == given


def pods(objects: list[Document]) -> list[Document]:
    """Returns the pod specs of all workloads in a list of objects."""
    found = [each for each in objects if each["kind"] in WORKLOADS]
    return [each["spec"] if each["kind"] == "Pod" else each["spec"]["template"]["spec"]
            for each in found]  # fmt: skip


def count_limited_containers(objects: list[Document]) -> int:
    """Checks that each container has requests and a memory limit, and returns the number of
    containers.
    """
    containers = [
        container
        for pod in pods(objects)
        for container in [*pod.get("initContainers", []), *pod["containers"]]
    ]
    for container in containers:
        assert set(container["resources"]["requests"]) == {"cpu", "memory"}
        # A CPU limit only delays what the container does.
        assert set(container["resources"]["limits"]) == {"memory"}
    return len(containers)


def test_every_pod_of_the_manifests_has_requests_and_a_limit() -> None:
    """Each container of the manifests has requests and a memory limit; a quota refuses pods without
    them.
    """
    assert count_limited_containers(composed(components())) == 1


def test_every_pod_of_the_chart_has_requests_and_a_limit(tmp_path: Path) -> None:
    with tools():
        chart = unpacked(tmp_path)
        made = rendered(
            chart, "metacontroller.enabled=true", "components.shards=true", 'shards=["b","c"]'
        )
    assert count_limited_containers(made) == 5
    sets = [each for each in made if each["kind"] == "StatefulSet"]
    assert [each["spec"]["template"]["spec"]["containers"][0]["resources"] for each in sets] == [
        metacontroller("metacontroller")["resources"]
    ] * 3


def commented() -> dict[str, tuple[str, str | None]]:
    """Returns the settings in the values of the chart: name -> comment, and default or None."""
    block = re.split(r"^(?=\S)", VALUES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    (settings,) = [each for each in block if each.startswith("settings:")]
    found: dict[str, tuple[str, str | None]] = {}
    comment: list[str] = []
    for line in settings.splitlines()[1:]:
        known = re.fullmatch(r"  (# )?([A-Z_]+): (.*)", line)
        if known:
            found[known[2]] = " ".join(comment), known[3] if known[1] else None
            comment = []
        elif line.strip().startswith("#"):
            comment.append(line.strip().removeprefix("# "))
    return found


@pytest.mark.parametrize("name", [each for each in commented() if each.startswith("TAPP_")])
def test_comment_in_the_chart_is_the_description_of_the_setting(name: str) -> None:
    """Compares the comment of each setting in the chart with its description in the code.

    test_docs.py compares docs/install.md, so that values, page and code have the same text.
    """
    field = Settings.model_fields[name.removeprefix("TAPP_").lower()]
    comment, default = commented()[name]
    assert comment == (field.description or "").rstrip(".")
    if default is not None:
        assert yaml.safe_load(default) == field.default


SIZED = re.compile(r"\d+ ?(?:[KMG]i?B|bytes)\b|\d+ ?(?:KB|MB) a (?:pod|worker)")


def test_comments_of_manifests_have_no_amounts_of_memory() -> None:
    """No comment of manifests and chart names an amount of memory, except for descriptions of
    settings.

    Amounts stand on the page about sizes only.
    """
    files = [*INSTALL.rglob("*.yaml"), *(ROOT / "charts" / "tapp" / "templates").rglob("*"), VALUES]
    settled = {comment for comment, _ in commented().values()}
    found = []
    for file in files:
        if file.is_file():
            comments = re.findall(r"(?:^ *#.*\n)+", file.read_text(encoding="utf-8"), re.MULTILINE)
            said = [" ".join(re.findall(r"^ *# ?(.*)$", each, re.MULTILINE)) for each in comments]
            found += [
                f"{file.relative_to(ROOT)}: {each}"
                for each in said
                if SIZED.search(each) and not any(each.startswith(known) for known in settled)
            ]
    assert found == []


def test_estimated_sizes_of_pods_and_bodies_are_the_same_in_all_texts() -> None:
    described = Settings.model_fields["memo_bytes"].description or ""
    estimate = section(SIZE, "Sizing").partition("so it counts as")[2]
    assert amount(described) == amount(estimate)
    described = Settings.model_fields["max_body_bytes"].description or ""
    each = amount(size("each request of 10,000 pods").partition(";")[2])
    assert amount(described) == pytest.approx(10_000 * each, rel=0.1)
