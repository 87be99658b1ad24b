"""Tests that numbers are read only in ASCII digits, everywhere: `٣` is not the number 3."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubectl_tapp.base import arguments
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.forecast.fail_if import read_condition
from tapp.kube.resources import is_amount
from tests.builders import claim_template, tapp, template
from tests.unit.world import World, condition, settled

ROOT = Path(__file__).parents[2]
NEW = template("nginx:2", container={"command": ["run"]})
THREES = {
    "Arabic-Indic": "٣",
    "Devanagari": "३",
    "fullwidth": "\uff13",
    "superscript": "³",
    "circled": "③",
    "mathematical": "\U0001d7d1",
}
"""Digits of other scripts, and other characters that Python's `isdigit` accepts."""


def _updated(**strategy: Any) -> Any:
    world = settled(replicas=4, updateStrategy=strategy).change(template=NEW)
    return [id for id, text in world.decisions().items() if text.startswith("Recreate")]


def _killed(three: str) -> Any:
    return settled(replicas=4).change(statuses={three: "Killed"}).decisions()


def _named(three: str) -> Any:
    world = settled(replicas=4, templatePool={"b": NEW})
    return world.change(templates={three: "b"}).decisions()


def _priority(three: str) -> Any:
    world = settled(replicas=4).change(template=NEW)
    asked = {"apps.tkestack.io/update-priority": three}
    world.modify(2, lambda pod: _annotated(pod, asked))
    return world.decisions()


def _annotated(document: Any, annotations: dict[str, str]) -> Any:
    metadata = document["metadata"]
    both = {**metadata.get("annotations", {}), **annotations}
    return {**document, "metadata": {**metadata, "annotations": both}}


def _lost_node(three: str) -> Any:
    found = tapp(forceDeletePod=True)
    world = World(_annotated(found, {"apps.tkestack.io/lost-node-seconds": three * 2}))
    return condition(world.sync(), "InvalidLostNodeSeconds") is None


def _own_port(three: str) -> Any:
    ports = [{"containerPort": "$(tapp.values.port)"}]
    made = template(container={"ports": ports})
    world = World(tapp(template=made, values={"0": {"port": three}}))
    return world.decisions()


def _own_probe(three: str) -> Any:
    probe = {"livenessProbe": {"tcpSocket": {"port": "$(tapp.values.port)"}}}
    world = World(tapp(template=template(container=probe), values={"0": {"port": three}}))
    world.sync()
    pods = [*world.pods.values()]
    return pods and pods[0]["spec"]["containers"][0]["livenessProbe"]["tcpSocket"]["port"]


def _values(three: str) -> Any:
    made = template(container={"args": ["$(tapp.values.word)"]})
    world = World(tapp(replicas=4, template=made, values={three: {"word": "x"}}))
    return world.decisions()


def _surplus_claim(three: str) -> Any:
    world = settled(
        replicas=4,
        volumeClaimTemplates=[claim_template()],
        persistentVolumeClaimRetentionPolicy={"whenScaled": "Delete"},
    )
    claim = world.claims["data-web-3"]
    name = f"data-web-{three}"
    world.claims[name] = {**claim, "metadata": {**claim["metadata"], "name": name}}
    del world.pods["web-3"]
    world.change(replicas=3).sync()
    return name in world.claims


def _refused(read: Callable[[str], Any]) -> Callable[[str], Any]:
    def outcome(three: str) -> Any:
        try:
            return read(three)
        except CommandError:
            return "refused"

    return outcome


INPUTS: dict[str, Callable[[str], Any]] = {
    "maxUnavailable": lambda three: _updated(maxUnavailable=f"{three * 2}%"),
    "forceUpdate.maxUnavailable": lambda three: _updated(
        template="other", forceUpdate={"maxUnavailable": f"{three * 2}%"}
    ),
    "partition": lambda three: _updated(partition=f"{three * 2}%", maxUnavailable=4),
    "instance in statuses": _killed,
    "instance in templates": _named,
    "instance in values": _values,
    "update priority of a pod": _priority,
    "lost-node-seconds": _lost_node,
    "port from a value": _own_port,
    "probe port from a value": _own_probe,
    "number in a claim name": _surplus_claim,
    "INSTANCES": _refused(lambda three: arguments.read_ids([three], 9)),
    "range of INSTANCES": _refused(lambda three: arguments.read_ids([f"0-{three}"], 9)),
    "--replicas": _refused(arguments.read_replicas),
    "share of a canary": _refused(lambda three: arguments.read_share(f"{three}%", 9)),
    "--partition": _refused(arguments.read_partition),
    "--partition in percent": _refused(lambda three: arguments.read_partition(f"{three}%")),
    "--timeout": _refused(lambda three: arguments.read_duration(f"{three}s")),
    "--fail-if": _refused(lambda three: read_condition(f"unavailable>{three}").limit),
    "quantity in the simulator": is_amount,
}


@pytest.mark.parametrize("outcome", INPUTS.values(), ids=INPUTS)
def test_digit_of_another_script_is_no_number(outcome: Callable[[str], Any]) -> None:
    """Passes the digit 3 in several scripts to each input that reads a number.

    The service refuses or ignores such a digit like any word, unlike the ASCII digit.
    """
    word = outcome("é")
    assert word != outcome("3")
    assert {name: outcome(three) for name, three in THREES.items()} == dict.fromkeys(THREES, word)


def test_quantity_in_other_digits_creates_no_pod() -> None:
    """The API server would refuse such a pod, so the condition names the quantity instead."""
    limits = {"memory": "٣Gi"}
    world = World(tapp(template=template(container={"resources": {"limits": limits}})))
    answer = world.hook.sync(world.request())
    assert [child["kind"] for child in answer["children"] if child["kind"] == "Pod"] == []
    messages = [each["message"] for each in answer["status"]["conditions"]]
    assert any("'memory' '٣Gi'" in message for message in messages)


def _reads(tree: ast.AST) -> Iterator[str]:
    """Yields line and code of the places in a file that accept digits of any script."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr in {"isdigit", "isdecimal", "isnumeric"}:
            yield f"{node.lineno}: {node.func.attr}"
        expression = next(iter(node.args), None)
        if node.func.attr in {"compile", "fullmatch", "match", "search", "sub", "findall"}:
            written = ast.unparse(expression) if expression is not None else ""
            flags = " ".join(ast.unparse(each) for each in [*node.args[1:], *node.keywords])
            text = "\\d" in written.replace("\\\\", "\\") and not written.startswith(("b'", "rb'"))
            if text and "ASCII" not in flags:
                yield f"{node.lineno}: {written}"


@pytest.mark.parametrize("package", ["tapp", "hooks", "kubectl_tapp", "crds", "simulator"])
def test_only_one_module_reads_digits(package: str) -> None:
    r"""Only `tapp/words/digits.py` uses `isdigit` and the like, and no `\d` accepts digits of all
    scripts.
    """
    found = [
        f"{path.relative_to(ROOT)}:{each}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for each in _reads(ast.parse(path.read_text()))
    ]
    allowed = re.compile(r"(tapp/words/digits\.py|simulator/\S+):\d+: isdigit")
    assert [each for each in found if not allowed.match(each)] == []
