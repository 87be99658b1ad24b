"""Tests that the documentation is true: names in it exist, and settings, metrics and conditions are
in it.
"""

import ast
import inspect
import io
import json
import logging
import re
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from hooks.app import create_app
from hooks.service import logs, metrics
from hooks.service.settings import Settings
from hooks.service.turns import AT_ONCE, MOST, MOST_OF_A_NAMESPACE, OF_A_NAMESPACE
from hooks.version import VERSION
from tapp import plan
from tapp.answer import claim_refusals, mistakes, refusals, status
from tapp.answer import conditions as answered
from tapp.decide import answer_size, judge, markers, ordered_ready, rollout
from tapp.decide.verdicts import Action
from tapp.words.conditions import HARMLESS, Type
from tapp.words.reasons import OF_DECISIONS, Reason
from tapp.words.vocabulary import UPDATE_PRIORITY
from tests.builders import crashing, template
from tests.conditions import TABLE, WAITED
from tests.contract.pages import (
    DESIGN,
    INSTALL,
    MEND,
    PROMISES,
    PROTOCOL,
    ROOT,
    SIZE,
    WATCH,
    WORD,
    quoted,
    rows,
    section,
    text,
)
from tests.hook_calls import observed
from tests.unit.world import settled

PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES += sorted((ROOT / "docs").glob("*.md"))

pages = pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])


# --- targets, links and paths ---------------------------------------------------------------------


def targets() -> set[str]:
    """Returns the names of all targets of the Makefile and of the files that it includes."""
    files = [ROOT / "Makefile", *ROOT.glob("tests/*/*.mk")]
    return {
        name for file in files for name in re.findall(r"^([a-z0-9-]+):", text(file), re.MULTILINE)
    }


@pages
def test_every_make_target_on_a_page_exists(page: Path) -> None:
    code = "\n".join(re.findall(r"```.*?```|`[^`\n]+`", text(page), re.DOTALL))
    named = set(re.findall(r"(?m)(?:^|`)\s*make ([a-z0-9][a-z0-9 -]*)", code))
    for words in named:
        assert set(words.split()) <= targets(), f"{page.name}: make {words}"


@pages
def test_every_link_leads_to_an_existing_file_and_heading(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", text(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            headings = re.findall(r"(?m)^#+ (.+)$", text(target))
            anchors = {
                re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in headings
            }
            assert anchor in anchors, f"{page.name}: {link}"


@pages
def test_every_path_of_the_repository_on_a_page_exists(page: Path) -> None:
    roots = "crds|docs|examples|gitops|hooks|metacontroller|migration|simulator|tapp|tests"
    for path in re.findall(rf"(?<![\w./-])(?:{roots})/[\w./-]*\w", text(page)):
        if re.fullmatch(r"tapp/\w+", path):
            continue  # kubectl wait tapp/NAME
        assert (ROOT / path).exists(), f"{page.name}: {path}"


def test_every_heading_that_code_refers_to_exists() -> None:
    """Looks in all code for references such as `docs/design.md, "The budget"`, and for their
    headings.
    """
    places = [*ROOT.glob("*.py"), *(path for top in CODE for path in (ROOT / top).rglob("*.py"))]
    assert len(places) > len(CODE)
    for place in places:
        flat = re.sub(r"\s*\n\s*(?:# )?", " ", text(place))
        for name, headings in re.findall(_POINTER, flat):
            page = text(ROOT / name)
            for heading in re.findall(r'"([^"]+)"', headings):
                assert re.search(rf"(?m)^#+ {re.escape(heading)}$", page), f"{place}: {heading}"


CODE = (
    "tapp", "hooks", "kubectl_tapp", "simulator", "crds", "release", "migration", "demo", "tests",
)  # fmt: skip
_POINTER = r'((?:docs/[\w-]+|README|CONTRIBUTING)\.md), ((?:"[^"]+"(?:, | and )?)+)'


def test_every_page_is_linked_from_the_readme() -> None:
    linked = set(re.findall(r"\]\(([^)#\s]+)", text(PAGES[0])))
    assert {str(page.relative_to(ROOT)) for page in PAGES[1:]} <= linked


def unpublished(directory: Path) -> bool:
    """Returns True if a kustomization installs the service with the image of the base, which is in
    no registry.
    """
    kustomization = yaml.safe_load(text(directory / "kustomization.yaml"))
    if "images" in kustomization:
        return False
    parts = kustomization.get("resources", [])
    return any(
        part == "deployment.yaml" or ((directory / part).is_dir() and unpublished(directory / part))
        for part in parts
    )


def test_no_command_installs_an_unpublished_image() -> None:
    manifests = sorted((ROOT / "metacontroller").rglob("kustomization.yaml"))
    shown = {
        path
        for file in [*PAGES, *manifests]
        for path in re.findall(r"kubectl apply [^\n`]*-k ([\w./-]*\w)", text(file))
    }
    assert unpublished(ROOT / "metacontroller" / "base")
    assert [path for path in shown - {"deploy"} if unpublished(ROOT / path)] == []
    assert "newName" in section(INSTALL, "From source").split("deploy/kustomization")[1]


def test_migration_steps_are_in_the_right_order() -> None:
    """The commands on the migration page have a fixed order.

    In any other order, Metacontroller would release every pod.
    """
    markdown = section(ROOT / "docs" / "migration.md", "Steps")
    found = re.findall(r"(?m)^ *((?:kubectl|python3) .*?)(?: +#.*)?$", markdown)
    steps = [line for line in found if "wait" not in line and "get pods" not in line]
    words = [
        *("scale deployment", "delete validating", "migration", "--apply", "patch crd"),
        "apply --server-side",
    ]
    assert [word for word, step in zip(words, steps, strict=True) if word not in step] == []
    assert "cluster-wide" in text(ROOT / "docs" / "migration.md")


# --- settings, metrics, fields --------------------------------------------------------------------


def test_settings_are_documented_with_their_defaults() -> None:
    documented = {cells[0].strip("`"): cells[1:] for cells in rows(section(INSTALL, "Settings"))}
    typed = {f"TAPP_{name.upper()}": field for name, field in Settings.model_fields.items()}
    for name, field in typed.items():
        default = "unset" if field.default is None else f"`{field.default}`"
        assert documented[name] == [default, field.description]
    service = ROOT / "hooks" / "service"
    files = (ROOT / "gunicorn.conf.py", service / "metrics.py", service / "address.py")
    served = "".join(text(file) for file in files)
    read = set(
        re.findall(r"""environ(?:\.get\(|\[|, )["']([A-Z_]+)|"([A-Z_]+)" (?:not )?in os""", served)
    )
    assert documented.keys() == typed.keys() | {a or b for a, b in read}


def test_documented_values_of_the_chart_exist() -> None:
    values = yaml.safe_load(text(ROOT / "charts" / "tapp" / "values.yaml"))
    table = rows(text(ROOT / "docs" / "chart-values.md"))
    assert table
    for name in {name for _, cell in table for name in quoted(cell)}:
        found = values
        for key in name.split("."):
            assert key in found, name
            found = found[key]


def test_disruption_budget_of_the_guide_is_the_one_of_the_example() -> None:
    """The guide shows only the fields of the example that matter."""
    guide = text(ROOT / "docs" / "how-to.md")
    (shown,) = re.findall(r"```yaml\n(spec:\n  disruptionBudget:.*?)```", guide, re.DOTALL)
    example = yaml.safe_load(text(ROOT / "examples" / "disruption-budget.yaml"))
    assert yaml.safe_load(shown)["spec"].items() <= example["spec"].items()


def test_documented_limits_of_concurrent_requests_are_those_of_the_code() -> None:
    sizing = " ".join(section(SIZE, "Sizing").split())
    assert f"decides {AT_ONCE} requests at a time, {OF_A_NAMESPACE} of one namespace" in sizing
    assert f"{MOST} requests wait or are decided, {MOST_OF_A_NAMESPACE} of one nam" in sizing


def test_documented_metrics_are_those_of_the_service() -> None:
    documented = {cells[0].strip("`") for cells in rows(section(WATCH, "Metrics"))}
    client = create_app(Settings(log_level="ERROR")).test_client()
    shown = re.findall(r"(?m)^# TYPE (tapp_\w+) (\w+)", client.get("/metrics").text)
    ours = {name for name, _ in shown if not name.endswith("_created")}
    assert documented == ours
    assert metrics.REQUESTS._labelnames == ("hook", "code")


def test_documented_log_line_has_the_fields_of_a_real_one(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logs.JsonFormatter())
    monkeypatch.setattr(logs.LOGGER, "handlers", [handler])
    ((_, request),) = blocks("request")
    create_app(Settings()).test_client().post("/sync", json=request)
    shown = re.search(r"(?m)^ +({.*})$", section(WATCH, "Logs"))
    assert shown
    assert list(json.loads(shown[1])) == list(json.loads(written.getvalue()))


# --- conditions and reasons -----------------------------------------------------------------------

BOTH = {
    "WaitingForBudget", "WaitingForDomain", "WaitingForOrder", "Paused", "Held", "Blocked",
    "PullFailed", "PullingImages", "ResizeDeferred",
}  # fmt: skip
CONDITIONS = {*Reason} - {*OF_DECISIONS} | BOTH
"""The reasons of conditions; those in `BOTH` are also reasons of decisions."""


def constants(module: Any) -> Iterator[str]:
    """Yields the strings in CamelCase in a module's code: types of conditions, and reasons."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        value = node.value if isinstance(node, ast.Constant) else None
        if isinstance(value, str) and WORD.fullmatch(value):
            yield value


def findings() -> Iterator[tuple[str, str]]:
    """Yields the type and the reason of each condition that is a refusal."""
    for module in (refusals, claim_refusals, mistakes):
        for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "refused":
                type, reason = (eval(ast.unparse(arg), vars(module)) for arg in node.args[:2])
                yield str(type), str(reason)


def test_documented_table_of_conditions_is_the_checked_one() -> None:
    documented = [tuple(cells) for cells in rows(section(MEND, "Which conditions go together"))]
    assert documented == list(TABLE)


def test_documented_table_of_other_tools_is_the_checked_one() -> None:
    """The table in docs/monitoring.md equals `WAITED`, which tests/scenarios/test_waiting_tools.py
    checks.
    """
    documented = [tuple(cells) for cells in rows(section(WATCH, "Waiting, and other tools"))]
    assert documented == list(WAITED)


def test_documented_refusals_are_those_of_the_code() -> None:
    before, refused = section(MEND, "Conditions of a TApp").split("| type | reason |")
    documented = [
        tuple(cell.strip("`") for cell in cells[:2]) for cells in rows(f"| head |{refused}")
    ]
    assert sorted(documented) == sorted(findings())
    (harmless,) = re.findall(r"All but([^.]+?)also make the TApp", before)
    assert quoted(harmless) == HARMLESS


def test_documented_reasons_are_those_of_the_code() -> None:
    conditions = section(MEND, "Conditions of a TApp")
    explained = {word for word in quoted(conditions) if WORD.fullmatch(word)}
    verdicts = quoted(section(DESIGN, "Verdicts"))
    used = {*Type, *CONDITIONS}
    named = quoted(conditions)
    assert used - named == set()
    # An event of Metacontroller, and a word in spec.statuses.
    assert explained - used == {"SyncError", "Killed"}
    written = {word for module in (status, answered, refusals) for word in constants(module)}
    assert written - verdicts == {"True", "False"}  # all other words are constants
    reasons = {word for word in verdicts if WORD.fullmatch(word)} - {"Keep"}
    actions = {action.value for action in Action}
    other = {"Always", "OnFailure", "Failed", "Pending", "Running", "Unknown", "Succeeded", "Ready"}
    other |= {"OrderedReady"}
    assert reasons - actions - other == set(OF_DECISIONS)


def test_reasons_in_code_are_taken_from_the_enum() -> None:
    for module in (judge, markers, rollout, plan, ordered_ready, answer_size):
        assert not {word for word in constants(module) if word in {*Reason}} - {"Completed"}


def test_table_of_decision_reasons_is_that_of_the_code() -> None:
    documented = [tuple(cells[:3]) for cells in rows(section(MEND, "Reasons of decisions"))]
    assert documented == [(f"`{r}`", str(r.standing), r.meaning) for r in OF_DECISIONS]


def test_rules_have_the_same_numbers_in_code_and_design() -> None:
    """The rules of `judge` have the same numbers in the comments of the code and in the table of
    docs/design.md.
    """
    table = section(DESIGN, "Verdicts")
    numbers = [cells[0] for cells in rows(table) if cells[0].isdigit()]
    code = re.findall(r"^    # (\d+)\. ", inspect.getsource(judge.judge), re.MULTILINE)
    assert numbers == code


# --- examples -------------------------------------------------------------------------------------


def blocks(kind: str) -> list[tuple[str, Any]]:
    """Returns the fenced JSON blocks of one kind in docs/endpoints.md: the text after the kind, and
    the JSON.
    """
    found = re.findall(rf"```json {kind} ?(\S*)\n(.*?)```", text(PROTOCOL), re.DOTALL)
    return [(rest, json.loads(body)) for rest, body in found]


@pytest.mark.parametrize(("path", "answer"), blocks("answer"), ids=lambda value: str(value)[:12])
def test_responses_in_the_protocol_are_real(path: str, answer: Any) -> None:
    ((_, request),) = blocks("request")
    client = create_app(Settings(log_level="ERROR"), clock=lambda: 0).test_client()
    got = json.loads(client.post(path, json=request).data)
    if path == "/sync":
        del got["status"]["conditions"]  # the page says so
    assert got == answer


def test_documented_endpoints_are_those_of_the_service() -> None:
    documented = {
        (path.strip(" `"), cells[1])
        for cells in rows(text(PROTOCOL).split("## A request")[0])
        for path in cells[0].split(",")
    }
    rules = create_app(Settings(log_level="ERROR")).url_map.iter_rules()
    methods = {(rule.rule, method) for rule in rules for method in rule.methods or ()}
    assert documented == {(rule, method) for rule, method in methods if method in ("GET", "POST")}


def test_worked_example_of_the_design_is_correct() -> None:
    """Replays each row of the table in docs/design.md, and compares the decisions (promise P2)."""
    table = rows(section(DESIGN, "A worked example"))
    world = settled(
        replicas=6,
        template=template("app:1"),
        templatePool={"canary": template("canary:1")},
        templates={"4": "canary", "5": "canary"},
        updateStrategy={"maxUnavailable": 2, "forceUpdate": {"maxUnavailable": "50%"}},
    )
    world.modify(1, crashing)
    world.change(template=template("app:2"), templatePool={"canary": template("canary:2")})
    for sync, *expected, _ in table:
        if "if" not in sync:
            request = world.request()
        asked = deepcopy(request)
        if "Descending" in sync:
            asked["parent"]["spec"]["updateStrategy"]["order"] = "Descending"
        if "partition" in sync:
            asked["parent"]["spec"]["updateStrategy"]["partition"] = 1
        if "priority" in sync:
            pod = observed(asked, "Pod")["web-3"]
            pod["metadata"]["annotations"][UPDATE_PRIORITY] = "1"
        instances = world.hook.answer("/plan", asked)["instances"]
        got = [
            [item["id"] for item in instances if item["available"]],
            [item["id"] for item in instances if item["action"] == "UpdateInPlace"],
            [item["id"] for item in instances if item["reason"] == "WaitingForBudget"],
        ]
        assert [" ".join(map(str, ids)) or "-" for ids in got] == expected, f"sync {sync}"
        if "if" in sync:
            continue  # an alternative to this sync
        world.sync()
        if sync != "1":  # the table's second sync comes before the containers restart
            world.kubelet()


# --- versions and properties ----------------------------------------------------------------------


def test_newest_version_of_the_changelog_is_that_of_the_service() -> None:
    found = re.search(r"^## \[([^\]]+)\]", text(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert found
    assert found[1] == VERSION
    assert f":{VERSION}\n" in text(ROOT / "metacontroller" / "base" / "deployment.yaml")
    assert f"tapp-hooks:{VERSION}" in text(PAGES[0])
    assert f"newTag: {VERSION}" in text(INSTALL)


def test_every_promise_names_existing_tests_that_mention_it() -> None:
    files = {path: text(path) for path in (ROOT / "tests").rglob("*.py")}
    functions = {name for body in files.values() for name in re.findall(r"def (\w+)\(", body)}
    table = rows(section(PROMISES, "Promises"))
    assert [number for number, *_ in table] == [f"P{number}" for number in range(1, 11)]
    for number, _, shown in table:
        for name in quoted(shown):
            assert (ROOT / name).is_file() if "/" in name else name in functions, (number, name)
    del files[Path(__file__)]
    said = {name for body in files.values() for name in re.findall(r"\bP\d+\b", body)}
    assert {number for number, *_ in table} - said == set()
