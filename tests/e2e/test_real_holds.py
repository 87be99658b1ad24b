"""Games on a real node that hold their pods: a rollout updates each when its match is over.

A game plays matches of a fixed length. The game reads its pending action from a file that the
kubelet updates. If there is an action at the end of a match, the game writes a file and stops
playing. The test then removes the hold, like a matchmaker. A game that is stopped in a match exits
with code 9.
"""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tests.e2e.kube import Json
from tests.holds import WANTED

from .realnode.trial import Trial
from .realnode.workloads import container, environment, tag_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(420)]

SECONDS = {0: 12, 1: 5, 2: 19, 3: 8}
"""Length of the matches in seconds, by instance number."""
GAME = """
over() { [ -f /run/over ] || exit 9; exit 0; }
trap over TERM
touch /run/started /run/serving
while :; do
  sleep "$SECONDS_OF_MATCH" & wait $!
  [ -s /told/wanted ] && break
done
touch /run/over
sleep 3600 & wait $!
"""
CUT_OFF = 9


def game(tag: str) -> tuple[Json, Json]:
    """Returns the container of a game, and further fields of its pod."""
    asked = {"fieldPath": f"metadata.annotations['{WANTED}']"}
    volume = {"name": "told", "downwardAPI": {"items": [{"path": "wanted", "fieldRef": asked}]}}
    main = container(
        tag,
        command=["sh", "-c", GAME],
        env=environment(SECONDS_OF_MATCH="$(tapp.values.seconds)"),
        volumeMounts=[{"name": "told", "mountPath": "/told"}],
    )
    return main, {"volumes": [volume], "terminationGracePeriodSeconds": 10}


class Matchmaker(threading.Thread):
    """Removes the holds of games that report the end of their match."""

    def __init__(self, real: Trial) -> None:
        super().__init__(daemon=True)
        self.real, self.let_go = real, dict[int, float]()
        self.ending = threading.Event()

    def is_over(self, id: int) -> bool:
        app = self.real.app
        found: list[Path] = self.real.witness.processes(app.namespace, f"{app.name}-{id}")
        return any((process / "root" / "run" / "over").exists() for process in found)

    def run(self) -> None:
        while len(self.let_go) < len(SECONDS) and not self.ending.wait(0.1):
            for id in SECONDS.keys() - self.let_go.keys():
                if self.is_over(id):
                    self.let_go[id] = time.monotonic() - self.real.witness.begun
                    self.real.app.annotate(id, hold=None)


def create_games(real: Trial) -> Trial:
    main, pod = game("1")
    values = {str(id): {"seconds": str(seconds)} for id, seconds in SECONDS.items()}
    strategy = {"maxUnavailable": 4}
    return real.create(main, pod=pod, replicas=4, values=values, updateStrategy=strategy)


def exit_codes(real: Trial) -> dict[int, int]:
    """Returns the exit code of the previous process in each pod, from the kubelet's status."""
    found = {}
    for id in SECONDS:
        ended = real.container(id).get("lastState", {}).get("terminated")
        if ended is not None:
            found[id] = int(ended["exitCode"])
    return found


def test_rollout_waits_for_the_hold_of_each_game(real: Trial, note: list[str]) -> None:
    create_games(real)
    born = real.app.uids()
    matchmaker = Matchmaker(real)
    for id, seconds in SECONDS.items():
        real.app.annotate(id, hold=f"a match of {seconds} s")
    matchmaker.start()
    main, pod = game("2")
    real.roll(main, seconds=300, **pod)
    matchmaker.ending.set()
    assert real.tags() == "2 2 2 2"
    assert real.app.uids() == born
    assert exit_codes(real) == dict.fromkeys(SECONDS, 0)
    ended = {int(name.rpartition("-")[2]): at for name, at in real.end_of("1").items()}
    waited = {id: round(ended[id] - matchmaker.let_go[id], 1) for id in sorted(SECONDS)}
    assert ended.keys() == matchmaker.let_go.keys()
    assert min(waited.values()) > 0
    spread = round(max(ended.values()) - min(ended.values()), 1)
    note.append(f"games: stopped so long after they let go: {waited}; the last {spread} s later")
    assert spread > 3
    assert all(
        tag_of(each.image) in ("1", "2") for m in real.witness.timeline for each in m.running
    )


def test_rollout_stops_matches_without_a_hold(real: Trial) -> None:
    """This shows that the test with holds would notice a stopped match."""
    create_games(real)
    main, pod = game("2")
    real.roll(main, seconds=120, **pod)
    assert CUT_OFF in exit_codes(real).values()
