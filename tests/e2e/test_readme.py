"""The TApp at the top of the README, and what it says that is seen then."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from .app import App
from .cluster import REPOSITORY, Cluster
from .plugin import Plugin

pytestmark = pytest.mark.e2e

CHANCE = {r"\b(?:\d+[smh])+\b": "1m", r"\btapp-e2e-\w+/": "default/", r"\b[\w-]+-\d (?=.*1m)": ""}
"""What differs from run to run: ages, the namespace, the nodes."""


def test_the_first_tapp_is_seen_as_the_readme_shows_it(
    app: App, cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    """Word by word, but for what is chance."""
    blocks = re.findall(r"```\w*\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    manifest, shown = blocks[0], blocks[1]
    app.apply(yaml.safe_load(manifest)).settle()
    plugin = Plugin.at(cluster, namespace, tmp_path)
    commands = re.findall(r"(?m)^\$ (.*)$", shown)
    assert len(commands) == 2
    seen = "".join(f"$ {command}\n{plugin.shell(command)}" for command in commands)
    for pattern, word in CHANCE.items():
        seen, shown = (re.sub(pattern, word, text) for text in (seen, shown))
    *words, rest = shown.split()
    assert rest == "..."
    assert seen.split()[: len(words)] == words, seen
