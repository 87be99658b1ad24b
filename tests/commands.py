"""Reads the commands in the documentation: its fenced blocks without a language.

`blocks` is the entry point. tests/e2e/test_commands.py and test_commands_of_installing.py run the
commands on a real API server, unless `NOT_HERE` says why not. tests/contract/test_commands.py
checks that each block has its place. In a block with `$` the lines after a command are its expected
output; `...` at their end stands for any text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = (
    "README.md",
    "CONTRIBUTING.md",
    "examples/README.md",
    "tests/e2e/README.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md")),
)
_PART = re.compile(r"(?ms)^#+ (?P<section>[^\n]+)$|^(?P<indent> *)```\n(?P<text>.*?)^ *```$")
_FENCED = re.compile(r"(?ms)^ *```[^\n]+\n.*?^ *```$")


@dataclass(frozen=True)
class Block:
    """A fenced block of shell commands on a page of the documentation.

    Attributes:
        name: the page, the section, and the block's number in the section.
        text: the lines of the block, without their common indentation.
    """

    name: str
    text: str

    @property
    def shows(self) -> bool:
        """True if the block shows commands behind `$` together with their output."""
        return self.text.startswith("$ ")

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Pairs of a command and its expected output; empty if the block shows no output."""
        found = re.split(r"(?m)^\$ ", self.text)[1:]
        parts = [re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", each, re.DOTALL) for each in found]
        return [(part[1], part[2]) for part in parts if part]


def blocks() -> Iterator[Block]:
    """Yields all blocks of all pages, in order."""
    for page in PAGES:
        section, number = "", 0
        text = _FENCED.sub("", (ROOT / page).read_text(encoding="utf-8"))
        for part in _PART.finditer(text):
            if part["section"]:
                section, number = part["section"], 0
                continue
            number += 1
            lines = part["text"].splitlines(keepends=True)
            body = "".join(line.removeprefix(part["indent"]) for line in lines)
            yield Block(f"{page}: {section} {number}", body)


def block(name: str) -> Block:
    """Returns the block with this name; fails if there is not exactly one."""
    (found,) = (each for each in blocks() if each.name == name)
    return found


RANDOM = (
    (r"\btapp-e2e-\w+\b", "default"),
    (r"\b\d{4}-\d\d-\d\dT[\d:]+Z", "TIME"),
    (r"\b(about|after) \d+ s\b", "AGE"),
    (r"\b(?:\d+[dhms])+(?:\.\.(?:\d+[dhms])+)?\b", "AGE"),  # an age, or a range of ages
    (r"\b(?:(?:fake|node)-\d|\d nodes)\b", "NODE"),
    (r"(?<=endpointslice.discovery.k8s.io/served-)\w{5}", "ANY"),
    (r"\bErrImagePull\b", "ImagePullBackOff"),  # a kubelet reports now one, now the other
)
"""Patterns of texts that differ from run to run, and the word that replaces such a text before a
comparison.
"""


def without_random(output: str) -> list[list[str]]:
    """Splits an output into the words of each line that is not empty.

    A text that differs from run to run, such as an age or a node's name, is replaced by a fixed
    word.
    """
    for pattern, word in RANDOM:
        output = re.sub(pattern, word, output)
    return [line.split() for line in output.splitlines() if line.strip()]


def matches(printed: str, shown: str) -> bool:
    """Returns True if the output `printed` of a command is the output `shown` on the page.

    On the page, `...` at the end of a line or as the last line stands for any text.
    """
    expected, found = without_random(shown), without_random(printed)
    if expected and expected[-1] == ["..."]:
        expected.pop()
        found = found[: len(expected)]
    return len(expected) == len(found) and all(
        words[:-1] == line[: len(words) - 1] if words[-1] == "..." else words == line
        for words, line in zip(expected, found, strict=True)
    )


def run(block: Block, shell: Callable[[str], str]) -> None:
    """Runs the commands of a block in a shell, and compares their output with the output on the
    page.

    `shell` runs a command and returns its output. A block that shows no output is run as one
    script, and nothing is compared.
    """
    if not block.shows:
        shell(block.text)
        return
    typed = [(command, shown, shell(command)) for command, shown in block.steps]
    story = "".join(f"$ {command}\n{printed.rstrip()}\n" for command, _, printed in typed)
    wrong = [command for command, shown, printed in typed if not matches(printed, shown)]
    assert wrong == [], f"{block.name}: the page shows something else of {wrong}. Seen:\n{story}"


RECIPES = tuple(each.name for each in blocks() if each.name.startswith("docs/how-to.md: "))
ALONE = (
    "README.md: TApp for today's Kubernetes 1",
    "README.md: Install on a cluster 4",
    "examples/README.md: Examples 1",
    "docs/gitops.md: Client-side apply 1",
    "docs/gitops.md: Server-side apply 1",
    "docs/kubectl-tapp.md: See 1",
    "docs/kubectl-tapp.md: Preview 1",
    "docs/kubectl-tapp.md: Canaries 1",
    "docs/troubleshooting.md: Lost ownership 1",
    "docs/monitoring.md: Events 1",
    "docs/sizing.md: Shards 1",
    *RECIPES,
)
"""Names of blocks of which each runs alone, in its own namespace of a cluster where the service
runs.
"""
TUTORIAL = tuple(
    each.name for each in blocks() if each.name.startswith("docs/tutorial.md: ") and each.shows
)
"""Names of blocks that tests/scenarios/test_tutorial.py runs in the demo's shell, from the first to
the last.
"""
BY_HELM = (
    "README.md: Install on a cluster 2",
    "docs/upgrade.md: Upgrade 1",
    "docs/security.md: What the service may do 1",
    "docs/upgrade.md: Uninstall 2",
)
BY_KUBECTL = (
    "README.md: Install on a cluster 3",
    "docs/monitoring.md: Is it running? 1",
    "docs/gitops.md: Argo CD 1",
    "docs/monitoring.md: Monitoring 1",
    "docs/sizing.md: Leaner pods 1",
    "docs/sizing.md: Leaner pods 2",
    "docs/troubleshooting.md: Backup and restore 1",
    "docs/troubleshooting.md: Backup and restore 2",
    "docs/upgrade.md: Uninstall 3",
    "docs/upgrade.md: Uninstall 1",
)
FROM_SOURCE = (
    "docs/migration.md: Steps 1",
    "docs/migration.md: Steps 2",
    "docs/install.md: From source 2",
    "docs/migration.md: If the order went wrong 1",
    "docs/migration.md: Steps 3",
    "docs/migration.md: Steps 4",
    "docs/migration.md: Steps 5",
    "docs/migration.md: Steps 6",
    "docs/upgrade.md: Uninstall 4",
)
"""`BY_HELM`, `BY_KUBECTL` and this list name blocks that run in their order, each list on an empty
control plane.
"""
_MAKE = "targets of this repository: .ci/run and the workflows run them"
_FETCHED = "fetches Metacontroller's manifests from GitHub; tests/e2e/test_least_privilege.py"
NOT_HERE = {
    "README.md: Try it 1": _MAKE,
    "docs/tutorial.md: 1. Open a shell 1": "tests/scenarios/test_tutorial.py starts this shell",
    "README.md: Install on a cluster 1": "needs Docker; tests/e2e/test_real_install.py plays it",
    "README.md: Make a release 1": "needs Docker, a registry; tests/e2e/test_release.py releases",
    "CONTRIBUTING.md: Before you send a change 1": _MAKE,
    "tests/e2e/README.md: End-to-end tests 1": _MAKE,
    "tests/e2e/README.md: Monitoring 1": _MAKE,
    "tests/e2e/README.md: A cluster to try things on 1": "starts this cluster, and stays",
    "tests/e2e/README.md: Recorded calls 1": "writes files of this repository",
    "tests/e2e/README.md: Raising the versions 1": "downloads and builds Kubernetes",
    "docs/kubectl-tapp.md: Install 1": "needs PyPI; tests/contract/test_wheel.py installs it",
    "docs/rehearse.md: A session 1": "needs no cluster; tests/plugin/test_rehearse.py types it",
    "docs/rehearse.md: Use it 1": "the options that tests/plugin/test_rehearse.py types",
    "docs/sizing.md: A second Metacontroller 1": _FETCHED,
    "docs/install.md: From source 1": _FETCHED,
    "docs/security.md: What Metacontroller may do 1": _FETCHED,
    "docs/security.md: Supply chain 1": "needs a registry with a signed release",
}
"""Names of blocks that no test runs, and the reason: most of them need a network."""
