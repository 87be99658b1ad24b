"""Tests the plugin file for k9s: every command in it exists in `kubectl tapp`, with its options."""

import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from tests.contract.pages import ROOT

PLUGINS: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "k9s" / "plugins.yaml").read_text())[
    "plugins"
]
TAKEN = frozenset("cdenswy")
"""The letters that k9s itself uses in the view of a custom resource (k9s 0.50, internal/view)."""
START = "from kubectl_tapp.entry import main; main()"

EACH = pytest.mark.parametrize("plugin", PLUGINS.values(), ids=PLUGINS)


def line_of(plugin: dict[str, Any]) -> str:
    """Returns the command line of a k9s plugin, without the pager and the prompt behind it."""
    args = plugin["args"]
    return args[1] if plugin["command"] == "bash" else " ".join([plugin["command"], *args])


@EACH
def test_k9s_plugin_runs_an_existing_command_with_existing_options(plugin: dict[str, Any]) -> None:
    command = re.match(r"kubectl tapp (\S+)([^|;]*)", line_of(plugin))
    assert command is not None
    verb, rest = command.groups()
    done = subprocess.run(
        [sys.executable, "-c", START, verb, "--help"], text=True, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for option in re.findall(r"--\S+", rest):
        assert option in done.stdout


@EACH
def test_k9s_plugin_names_the_selected_tapp_with_namespace_and_context(
    plugin: dict[str, Any],
) -> None:
    for word in ("$NAME", "--namespace $NAMESPACE", "--context $CONTEXT"):
        assert word in line_of(plugin)
    assert plugin["scopes"] == ["tapps"]


def test_shortcuts_of_k9s_plugins_are_free_and_unique() -> None:
    keys = [plugin["shortCut"] for plugin in PLUGINS.values()]
    assert len(set(keys)) == len(keys)
    assert not TAKEN & set(keys)


def test_k9s_plugins_that_write_are_dangerous() -> None:
    """k9s hides dangerous plugins in its read-only mode."""
    writing = {name for name, plugin in PLUGINS.items() if plugin.get("dangerous")}
    assert writing == {"tapp-restart", "tapp-rollback"}
