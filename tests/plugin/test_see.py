"""What `status`, `why` and `list` show, for each state that the field knows."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugin.standin import Document, StandIn, kubectl_tapp
from tests.scenarios.life import Life, example

GOLDENS = Path(__file__).parent / "golden"


def web(**spec: object) -> Document:
    """A TApp of four instances, some changed."""
    (document,) = example("same-template")
    return {
        **document,
        "metadata": {"name": "web"},
        "spec": {**document["spec"], "replicas": 4, **spec},
    }


def template(image: str = "nginx:1.28", **spec: object) -> Document:
    """A pod template."""
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "web", "image": image}], **spec},
    }


def calm(life: Life) -> None:
    """Everything runs."""


def stuck_image(life: Life) -> None:
    """A roll-out to an image that does not exist."""
    life.world.kubelet.behaviour.bad_images.add("nginx:typo")
    life.begin_patch(template=template("nginx:typo")).world.run(90)


def crashing(life: Life) -> None:
    """A new image whose container ends again and again."""
    life.world.kubelet.behaviour.crashing_images.add("nginx:bad")
    life.begin_patch(template=template("nginx:bad")).world.run(120)


def killed(life: Life) -> None:
    """One is stopped."""
    life.patch(statuses={"2": "Killed"})


def paused(life: Life) -> None:
    """Updates are paused in the middle of a change."""
    life.patch(template=template("nginx:1.29"), updateStrategy={"paused": True})


def typo(life: Life) -> None:
    """A template's name that leads nowhere, for one that runs and one that is new."""
    life.patch(templates={"1": "v2", "4": "v2"}, replicas=5)


def budget(life: Life) -> None:
    """A budget that is no number."""
    life.patch(template=template("nginx:1.29"), updateStrategy={"maxUnavailable": "many"})


def scaled_down(life: Life) -> None:
    """Pods of instances that are not wanted any more, on their way out."""
    life.begin_patch(replicas=2).world.run(0.5)


def recreated(life: Life) -> None:
    """A change that takes new pods, under way."""
    life.begin_patch(template=template(terminationGracePeriodSeconds=60)).world.run(1)


def silent(life: Life) -> None:
    """A node that is not heard of."""
    life.world.nodes.lose("node-1")
    life.world.run(60)


def unscheduled(life: Life) -> None:
    """No node takes the new pods."""
    life.world.kubelet.behaviour.unschedulable = lambda _pod: True
    life.begin_patch(replicas=6).world.run(90)


STATES: list[Callable[[Life], None]] = [
    calm, stuck_image, crashing, killed, paused, typo, budget, scaled_down, recreated, silent,
    unscheduled,
]  # fmt: skip


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_what_is_shown(state: Callable[[Life], None], update_golden: bool) -> None:
    """The goldens are the output, to be read by a person: `--update-golden` writes them anew."""
    life = Life().apply(web())
    state(life)
    standin = StandIn(life.world)
    shown = [f"# {state.__doc__}"]
    for verb in ("status", "why"):
        said = kubectl_tapp(standin, verb, "web")
        assert (said.code, said.err) == (0, "")
        shown += ["", f"$ kubectl tapp {verb} web", *said.lines]
    assert standin.writes == []
    golden = GOLDENS / f"{state.__name__.replace('_', '-')}.txt"
    text = "\n".join(shown) + "\n"
    if update_golden:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert golden.read_text(encoding="utf-8") == text
