"""Changes Metacontroller, its registration or the TApp's status during a rollout.

`METACONTROLLER_OTHER_BIN` names another version of Metacontroller, such as the last one of the
previous minor version. Without the variable, the tests of upgrades are skipped.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .app import App
from .disturbed_rollout import Roll
from .kube import Json, Kube, documents
from .kubelet_controls import Levers
from .metacontroller import SHIPPED, Controller, RealMetacontroller, another
from .proxy import HookProxy

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]
(REGISTRATION,) = documents(SHIPPED[0])
HISTORY = ("apps/v1", "controllerrevisions")


# --- Metacontroller -------------------------------------------------------------------------------


@pytest.fixture
def other(tapps: Controller, kube: Kube, workspace: Path) -> Iterator[RealMetacontroller]:
    """Another version of Metacontroller, not started. At the end, the first version runs again."""
    given = os.environ.get("METACONTROLLER_OTHER_BIN")
    if not given:
        pytest.skip("there is one version of Metacontroller: METACONTROLLER_OTHER_BIN=FILE")
    found = another(tapps, kube, workspace, name="metacontroller-other", binary=Path(given))
    yield found
    found.stop()
    tapps.stop()
    tapps.start()


@pytest.mark.parametrize("back", [False, True], ids=["to the other", "and back"])
def test_another_version_of_metacontroller_continues_the_rollout(
    other: RealMetacontroller, tapps: Controller, app: App, levers: Levers, back: bool
) -> None:
    """An upgrade or downgrade by one minor version must write no child twice."""
    pair: list[Controller] = [other, tapps] if back else [tapps, other]
    if back:
        tapps.stop()
        other.start()
    rolling = Roll(app, levers).begin()
    pair[0].stop()
    pair[1].start()
    rolling.end().wrote_once()


# --- the registration -----------------------------------------------------------------------------


def often(spec: Json) -> None:
    """Sets a sync of each TApp every two seconds."""
    spec["resyncPeriodSeconds"] = 2


def seldom(spec: Json) -> None:
    """Removes the periodic sync."""
    del spec["resyncPeriodSeconds"]


def first_protocol(spec: Json) -> None:
    """Sets version 1 of the hook protocol."""
    for hook in spec["hooks"].values():
        hook["version"] = "v1"


def no_history(spec: Json) -> None:
    """Removes ControllerRevisions from the child resources."""
    spec["childResources"] = [
        each for each in spec["childResources"] if each["resource"] != HISTORY[1]
    ]


@pytest.fixture
def register(tapps: Controller, hook_proxy: HookProxy) -> Iterator[Callable[..., None]]:
    """Applies the registration with changes. At the end, the shipped registration applies again."""

    def apply(change: Callable[[Json], None] = lambda _: None) -> None:
        changed = copy.deepcopy(REGISTRATION)
        change(changed["spec"])
        tapps.register(changed, hook_proxy.url)

    yield apply
    apply()


@pytest.mark.parametrize("change", [often, seldom, first_protocol, no_history])
def test_rollout_and_history_survive_a_changed_registration(
    app: App, levers: Levers, register: Callable[..., None], change: Callable[[Json], None]
) -> None:
    """The rollout continues within its budget, and the history stays usable."""
    rolling = Roll(app, levers).create()
    before = revision_uids(app)
    assert before
    rolling.begin()
    register(change)
    rolling.end()
    assert revision_uids(app) >= before
    register()
    app.settle()
    app.until(lambda: len(revision_uids(app)) == 2, "both templates are in the history")
    assert revision_uids(app) > before
    assert app.restarts() == dict.fromkeys(app.pods, 1)


def revision_uids(app: App) -> set[str]:
    """Returns the uids of the TApp's revisions."""
    found = app.kube.list_all(*HISTORY, app.namespace)
    return {each["metadata"]["uid"] for each in found}


# --- the status -----------------------------------------------------------------------------------


def test_lost_status_costs_no_pod(app: App, levers: Levers, tapps: Controller, kube: Kube) -> None:
    """A cluster that is restored from a backup has the pods, but not the status."""
    rolling = Roll(app, levers).begin()
    tapps.stop()
    kube.patch(f"{app.path}/status", {"status": None})
    assert app.status == {"observedGeneration": -1}  # the default of the CRD
    tapps.start()
    rolling.end().wrote_once()
