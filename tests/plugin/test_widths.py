"""Tests tables on terminals with 40, 60, 80 and 120 columns: identifiers of a row are never cut."""

import re
from functools import cache
from io import StringIO

import pytest
from rich.text import Text

from kubectl_tapp.main import run
from simulator.objects.clock import EPOCH
from tests.builders import manifest, template
from tests.plugin.fake_kubectl import StandIn
from tests.plugin.session import Terminal
from tests.plugin.states import many
from tests.scenarios.life import Life
from tests.sizes import size

WIDTHS = (40, 60, 80, 120)
_IMAGE = "registry.example.com/team/shop/web@sha256:" + "0123456789abcdef" * 4


def on_terminal(standin: StandIn, columns: int, *arguments: str) -> list[str]:
    """Returns the lines that a call prints on a terminal with this many columns, without colors."""
    screen = Terminal()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", screen)
        patched.setenv("COLUMNS", str(columns))
        patched.setenv("TERM", "xterm-256color")
        patched.delenv("NO_COLOR", raising=False)
        code = run(
            arguments,
            runner=standin,
            clock=lambda: EPOCH.timestamp() + standin.world.clock.now,
            sleep=standin.world.run,
        )
    assert code == 0
    lines = [Text.from_ansi(line).plain.rstrip() for line in screen.getvalue().splitlines()]
    assert all(len(line) <= columns for line in lines)
    return lines


@cache
def life() -> Life:
    """Returns a TApp of twelve instances with long names, whose rollout is stuck at an image that
    does not exist.
    """
    name = "canary-of-the-week"
    life = Life().apply(
        manifest(replicas=12, templatePool={name: template(_IMAGE)}, templates={"11": name})
    )
    life.world.kubelet.levers.bad_images.add("nginx:typo")
    life.begin_patch(template=template("nginx:typo")).world.run(90)
    return life


def rolling() -> StandIn:
    """Returns a fake kubectl for the TApp of `life`, which no test of this file writes to."""
    return StandIn(life().world)


def table_of(lines: list[str]) -> tuple[list[str], list[list[str]]]:
    """Returns the column heads of the table in these lines, and the cells of each row."""
    start = next(at for at, line in enumerate(lines) if line.startswith("ID"))
    rows = []
    for line in lines[start + 1 :]:
        if not line:
            break
        rows.append(re.split(r" {2,}", line))
    return lines[start].split(), rows


@pytest.mark.parametrize("columns", WIDTHS)
def test_number_and_revision_of_an_instance_are_complete_at_every_width(columns: int) -> None:
    heads, rows = table_of(on_terminal(rolling(), columns, "status", "web"))
    assert [row[0] for row in rows] == [str(id) for id in range(12)]
    place = heads.index("REVISION")
    revisions = [row[place] for row in rows]
    assert all(re.fullmatch(r"v1-[0-9a-f]{8}( \(old\))?", text) for text in revisions)
    assert {"STATE"} < set(heads)


@pytest.mark.parametrize(
    ("columns", "shown"),
    [
        (40, "ID REVISION STATE"),
        (60, "ID TEMPLATE REVISION STATE READY"),
        (80, "ID TEMPLATE REVISION IMAGE STATE READY"),
        (120, "ID TEMPLATE REVISION IMAGE STATE READY RESTARTS NODE SINCE"),
    ],
)
def test_narrow_terminal_omits_columns(columns: int, shown: str) -> None:
    heads, _ = table_of(on_terminal(rolling(), columns, "status", "web"))
    assert heads == shown.split()


@cache
def crowd() -> StandIn:
    """Returns a fake kubectl for a TApp with more instances than a table shows."""
    return many(size(200, 1000))


@pytest.mark.parametrize("columns", WIDTHS)
def test_numbers_in_a_folded_line_are_complete(columns: int) -> None:
    standin = crowd()
    _, rows = table_of(on_terminal(standin, columns, "status", "web"))
    _, wide = table_of(on_terminal(standin, 400, "status", "web"))
    assert [row[0] for row in rows] == [row[0] for row in wide]


@pytest.mark.parametrize("columns", WIDTHS)
def test_name_of_a_tapp_is_complete_in_a_list(columns: int) -> None:
    name = "payments-of-the-shop"
    life = Life().begin({**manifest(), "metadata": {"name": name}}).settle()
    (_, line) = on_terminal(StandIn(life.world), columns, "list", "-A")
    assert line.split()[:2] == ["default", name]


@pytest.mark.parametrize("columns", WIDTHS)
def test_list_shows_the_counts_without_permission_for_pods(columns: int) -> None:
    standin = rolling()
    standin.forbid("list pods", "list events")
    told = " ".join(on_terminal(standin, columns, "status", "web"))
    assert "11/12 ready, 2 up to date, 11 available" in told
    listed = on_terminal(standin, 200, "list")[1].split()
    assert listed[1:4] == ["11/12", "2", "11"]


@pytest.mark.parametrize("columns", ["0", "1", "-5", "x", "99999999999"])
def test_output_is_complete_although_the_number_of_columns_is_odd(columns: str) -> None:
    """A terminal without a size has 0 columns; rich prints no text into 0 or 1 columns."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", screen := StringIO())
        patched.setenv("COLUMNS", columns)
        assert run(["status", "web"], runner=rolling()) == 0
    assert "nginx:typo" in screen.getvalue()
