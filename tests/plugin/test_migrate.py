"""Tests `kubectl tapp migrate`: it shows the plan of `python -m migration`, asks, and migrates."""

import pytest

from kubectl_tapp.main import run
from tests.plugin.old_cluster import Old


def test_plan_is_shown_and_without_a_terminal_nothing_is_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    old = Old()
    assert run(["migrate", "-A"], old) == 2
    said = capsys.readouterr()
    assert "TApp shop/web" in said.out
    assert "pods/web-0" in said.out or "web-0" in said.out
    assert "4 changes to make; no pod restarts." in said.out
    assert said.err == (
        "error: the command cannot ask for confirmation without a terminal; nothing was written. "
        "Repeat it with -y\n"
    )
    assert old.fake.patched == []


def test_migration_runs_with_yes(capsys: pytest.CaptureFixture[str]) -> None:
    old = Old()
    assert run(["migrate", "-A", "--context", "c", "-y"], old) == 0
    assert "4 of 4 changes made." in capsys.readouterr().out
    assert len(old.fake.patched) == 4
    assert all("--context=c" in command for command in old.fake.commands)


def test_dry_run_writes_nothing_and_asks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    old = Old()
    assert run(["migrate", "-n", "shop", "web", "--dry-run"], old) == 0
    assert "4 changes to make" in capsys.readouterr().out
    assert old.fake.patched == []


@pytest.mark.parametrize(
    ("arguments", "sentence", "code"),
    [
        (["web", "-A"], "name TApps, or ask for all namespaces, not both", 2),
        (["wbe", "-n", "shop"], "no TApp wbe in shop; kubectl get tapps -A lists all TApps", 1),
    ],
    ids=["name and all namespaces", "unknown name"],
)
def test_invalid_arguments_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], sentence: str, code: int
) -> None:
    old = Old()
    assert run(["migrate", *arguments], old) == code
    assert capsys.readouterr().err == f"error: {sentence}\n"
    assert old.fake.patched == []
