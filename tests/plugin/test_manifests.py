"""Tests that manifests are read as kubectl reads them.

The expected values are recorded in tables, which the kubectl on PATH confirms if there is one.
"""

import json
import math
import os
import shutil
import subprocess
from typing import Any

import pytest

from kubectl_tapp.base.manifests import ManifestError, read_manifests
from tests.plugin.clusters import running
from tests.plugin.fake_kubectl import kubectl_tapp

SCALARS: dict[str, Any] = {
    # Numbers in Go's notation; a float without a fraction is an integer in JSON.
    "81111e1": 811110, "1e3": 1000, "1E+3": 1000, "12e03": 12000, "+1e3": 1000, "1.": 1,
    "1.0": 1, "1.e3": 1000, ".5": 0.5, "+.5": 0.5, ".5_0": 0.5, "1_0.5_0": 10.5, "-0.0": 0,
    "1e-7": 1e-7, "1e20": 10**20, "1e21": 1e21, "1e400": "1e400", ".1e400": ".1e400", "1e": "1e",
    "0x1F": 31, "0X1f": 31, "0x_1": 1, "0x": "0x", "-0x1": -1, "0x1p-2": "0x1p-2",
    "0777": 511, "0o17": 15, "0O7": 7, "-0o7": -7, "0_7": 7, "08": 8, "0o8": "0o8", "00": 0,
    "0b101": 5, "0B1": 1, "-0b1": -1, "0b-1": -1, "0b2": "0b2",
    "1_000": 1000, "1__0": 10, "_1": "_1", "+1": 1, "--1": "--1", "1,000": "1,000",
    "9223372036854775807": 2**63 - 1, "9223372036854775808": 9223372036854775808.0,
    "-9223372036854775808": -(2**63), "99999999999999999999": 1e20,
    # Times and numbers to the base of 60 are texts.
    "2024-01-01": "2024-01-01", "2024-01-01T00:00:00Z": "2024-01-01T00:00:00Z",
    "2024-1-1 10:00:00": "2024-1-1 10:00:00", "1:30": "1:30", "12:30:45": "12:30:45",
    "190:20:30.15": "190:20:30.15",
    # Booleans and nulls of YAML 1.1.
    "yes": True, "Yes": True, "YES": True, "yEs": "yEs", "y": True, "N": False, "on": True,
    "Off": False, "true": True, "TRUE": True, "tRUE": "tRUE", "~": None, "null": None,
    "Null": None, "nULL": "nULL", "": None, "none": "none",
    "inf": "inf", "nan": "nan", "=": "=", "<<": "<<", "é": "é", "1.2.3": "1.2.3", "v1": "v1",
    # Quotes and tags.
    "'12'": "12", '"yes"': "yes", "!!str 12": "12", "!!str yes": "yes", "!!int '0x10'": 16,
    "!!float 3": 3, "!!bool on": True, "!!null ''": None, "!!binary aGk=": "hi", "!foo bar": "bar",
    "!!timestamp 2001-01-01": "2001-01-01", "|\n  a\n  b": "a\nb\n", ">\n  a\n  b": "a b\n",
}  # fmt: skip
"""A scalar of YAML -> its value in the JSON that kubectl sends."""
MAPPINGS: dict[str, Any] = {
    "{1: a, true: b, 1.5: c, 0x10: d}": {"1": "a", "true": "b", "1.5": "c", "16": "d"},
    "{yes: a}": {"true": "a"},
    "{81111e1: a}": {"811110": "a"},
    "{1e6: a}": {"1e+06": "a"},
    "{1234567.0: a}": {"1.234567e+06": "a"},
    "{.inf: a}": {".inf": "a"},
    "{2024-01-01: a}": {"2024-01-01": "a"},
    "{a: 1, a: 2}": {"a": 2},
    "{a: 1, <<: {a: 2, b: 3}}": {"a": 2, "b": 3},
    "{<<: {a: 2, b: 3}, a: 1}": {"a": 1, "b": 3},
    "{<<: [{a: 1}, {a: 2, b: 3}]}": {"a": 1, "b": 3},
    "{'<<': 1}": {"<<": 1},
    "{x: &x [1, 2], z: *x}": {"x": [1, 2], "z": [1, 2]},
    "{x: &x {p: 1}, z: {<<: *x, q: 2}}": {"x": {"p": 1}, "z": {"p": 1, "q": 2}},
    "{? a : b, c}": {"a": "b", "c": None},
    "!!set {a, b}": {"a": None, "b": None},
}
REFUSED = [
    "!!int 3.5", "!!int x", "!!bool 1", "!!null x", "!!binary $", "!!timestamp x", ".inf", "-.INF",
    ".nan", "{~: a}", "{[a]: b}", "{{a: 1}: b}", "{<<: 1}", "{<<: [1]}", "*x", "&x [*x]",
    "{18446744073709551615: a}", "[a, b", "{a: b", "'a", "@a", "a: b: c", "\x07", "x\n--- {a: 1}",
    "a\n b: c", '"\\ud800"',
]  # fmt: skip
"""Values that kubectl refuses."""
_HEAD = "apiVersion: v1\nkind: Some\nmetadata: {name: a}\n"
_JSON = '{"apiVersion": "v1", "kind": "Some", "metadata": {"name": "a"}, "v": %s}'
FILES: dict[str, tuple[bytes, list[Any] | None]] = {
    "UTF-8 with its mark": (b"\xef\xbb\xbf" + f"{_HEAD}v: é".encode(), ["é"]),
    "UTF-16, little-endian, with its mark": (
        b"\xff\xfe" + f"{_HEAD}v: é\U0001f600".encode("utf-16-le"), ["é\U0001f600"]),
    "UTF-16, big-endian, with its mark": (
        b"\xfe\xff" + f"{_HEAD}v: é\r\n".encode("utf-16-be"), ["é"]),
    "several documents in UTF-16": (
        b"\xff\xfe" + f"{_HEAD}v: 1\r\n---\r\n{_HEAD}v: 2".encode("utf-16-le"), [1, 2]),
    "JSON in UTF-16": (b"\xff\xfe" + (_JSON % 1).encode("utf-16-le"), [1]),
    "UTF-16 without a mark": (f"{_HEAD}v: 1".encode("utf-16-le"), None),
    "UTF-32": (f"{_HEAD}v: 1".encode("utf-32"), None),
    "UTF-32, big-endian": (b"\0\0\xfe\xff" + f"{_HEAD}v: 1".encode("utf-32-be"), None),
    "Latin-1": (f"{_HEAD}v: café".encode("latin-1"), ["caf\ufffd"]),
    "empty documents, comments": (f"---\n# a\n---\n---   # b\n{_HEAD}v: 1\n---\n".encode(), [1]),
    "a comment right behind the dashes": (f"{_HEAD}v: 1\n---# b\n{_HEAD}v: 2".encode(), [1, 2]),
    "a block scalar before the dashes": (
        f"{_HEAD}v: |\n  a\n---\n{_HEAD}v: 2".encode(), ["a\n", 2]),
    "files with marks, one behind the other": (
        b"\xef\xbb\xbf" + f"{_HEAD}v: 1\n---\n\ufeff{_HEAD}v: 2".encode(), [1, 2]),
    "lines of Windows": (f"{_HEAD}v: 1\n---\n{_HEAD}v: 2\n".replace("\n", "\r\n").encode(), [1, 2]),
    "what follows the end of a document": (
        f"{_HEAD}v: 1\n...\nv: [\n---\n{_HEAD}v: 2".encode(), [1, 2]),
    "a tab before a value": (f"{_HEAD}v:\t1".encode(), [1]),
    "a tab as indentation": (f"{_HEAD}v:\n\ta: 1".encode(), None),
    "a directive": (f"%YAML 1.1\n---\n{_HEAD}v: 1".encode(), None),
    "JSON": ((_JSON % '[1.0, 1e3, 0.5, "1e3", null]').encode(), [[1, 1000, 0.5, "1e3", None]]),
    "JSON with a key twice": ((_JSON % '1, "v": 2').encode(), [2]),
    "JSON objects without a separator": (
        (_JSON % 1 + _JSON % 2 + "\n" + _JSON % 3).encode(), [1, 2, 3]),
    "JSON, then YAML": (f"{_JSON % 1}\n---\n{_HEAD}v: yes".encode(), [1, True]),
    "two JSON objects, then YAML": (f"{_JSON % 1}{_JSON % 2}\n---\n{_HEAD}v: 1".encode(), None),
    "JSON with what only YAML allows": ((_JSON % "NaN, }").replace(", }", "").encode(), ["NaN"]),
    "JSON with half of a character": ((_JSON % '"\\ud800"').encode(), ["\ufffd"]),
    "JSON with a number that is too large": ((_JSON % "1e400").encode(), None),
}  # fmt: skip
"""The bytes of a file -> the field `v` of each object; None if kubectl refuses the file."""
_SINCE_1_33 = ("JSON, then YAML", "JSON with what only YAML allows")
"""What an older kubectl refuses."""


def _values(data: bytes) -> list[Any] | None:
    try:
        return [each["v"] for each in read_manifests(data)]
    except ManifestError:
        return None


def _equal(found: Any, wanted: Any) -> bool:
    """Returns True if both values are the same JSON: `1` is not `true`, and numbers are compared as
    floats.
    """
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_equal(found[k], wanted[k]) for k in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(_equal, found, wanted))
    if isinstance(found, float) or isinstance(wanted, float):
        return math.isclose(found, wanted, rel_tol=1e-15)
    return bool(found == wanted)


@pytest.mark.parametrize("text", [*SCALARS, *MAPPINGS])
def test_value_has_the_type_that_kubectl_reads(text: str) -> None:
    found = _values(f"{_HEAD}v: {text}\n".encode())
    assert found is not None
    assert _equal(found, [(SCALARS | MAPPINGS)[text]]), found


@pytest.mark.parametrize("text", REFUSED)
def test_value_is_refused_if_kubectl_refuses_it(text: str) -> None:
    assert _values(f"{_HEAD}v: {text}\n".encode()) is None


@pytest.mark.parametrize("name", FILES)
def test_file_is_read_as_kubectl_reads_it(name: str) -> None:
    data, wanted = FILES[name]
    found = _values(data)
    assert (found is None) is (wanted is None)
    assert _equal(found, wanted), found


def test_aliases_that_repeat_aliases_are_refused() -> None:
    """Refuses a file in which nine levels of nine YAML aliases each would become 400 million
    values.
    """
    lines = ["v: 1", "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    assert _values((_HEAD + "\n".join(lines)).encode()) is None


def test_refusal_names_the_line_of_the_file() -> None:
    with pytest.raises(ManifestError, match=r"\(line 7\)$"):
        read_manifests(f"{_HEAD}v: 1\n---\na: 1\nb: !!int x\n")


KUBECTL = os.environ.get("KUBECTL") or shutil.which("kubectl")
_READ = ["patch", "--local", "--type=merge", "--patch={}", "--filename=-", "--output=json"]
"""A call in which kubectl reads objects of any kind and prints them, without a cluster."""


def _by_kubectl(data: bytes) -> list[Any] | None:
    environment = {**os.environ, "KUBERC": "off", "KUBECONFIG": os.devnull}
    done = subprocess.run(
        [str(KUBECTL), *_READ], input=data, capture_output=True, env=environment, check=False
    )
    if done.returncode:
        return None
    decoder, text, found = json.JSONDecoder(), done.stdout.decode().strip(), []
    while text:
        document, end = decoder.raw_decode(text)
        found.append(document["v"])
        text = text[end:].lstrip()
    return found


@pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl")
def test_table_is_what_kubectl_reads() -> None:
    """Compares the recorded values and refusals with those of the kubectl on PATH."""
    table = SCALARS | MAPPINGS
    found = _by_kubectl("---\n".join(f"{_HEAD}v: {text}\n" for text in table).encode())
    assert found is not None
    wrong = {
        text: each
        for (text, wanted), each in zip(table.items(), found, strict=True)
        if not _equal(each, wanted)
    }
    assert not wrong
    read = {text: _by_kubectl(f"{_HEAD}v: {text}\n".encode()) for text in REFUSED}
    assert {text: each for text, each in read.items() if each is not None} == {}
    files = {name: _by_kubectl(data) for name, (data, _) in FILES.items()}
    older = {name for name in _SINCE_1_33 if files[name] is None}
    assert {k: v for k, v in files.items() if k not in older and not _equal(v, FILES[k][1])} == {}


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("way", ["file", "--from"])
def test_plan_reads_files_of_windows(tmp_path: Any, encoding: str, way: str) -> None:
    """Plans a file in UTF-8 or UTF-16 with a byte order mark, and with lines that end with CR and
    LF.

    PowerShell writes such files.
    """
    text = (
        "apiVersion: apps.tkestack.io/v1\r\nkind: TApp\r\nmetadata: {name: web}\r\nspec:\r\n"
        "  replicas: 6\r\n  template:\r\n    metadata: {labels: {app: web, commit: '81111e1'}}\r\n"
        "    spec: {containers: [{name: app, image: nginx}]}\r\n"
    )
    (tmp_path / "web.yaml").write_bytes(text.encode(encoding))
    path = str(tmp_path / "web.yaml")
    before = ["--from", path] if way == "--from" else ["--no-dry-run"]
    said = kubectl_tapp(running(), "plan", *before, "-f", path, "-o", "json")
    assert said.err == ""
    assert said.code == 0
    assert {each["template"] for each in json.loads(said.out)["instances"]} == {"default"}
