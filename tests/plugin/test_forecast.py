"""Tests that a forecast has the same writes, in the same order, as those that follow the edit.

tests/e2e/test_differential.py checks that a real API server gets the same writes in these
scenarios.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kubectl_tapp.forecast.forecast import Outcome
from simulator.api.store import NotFoundError
from tapp.kube.merges import merge_patch
from tests.builders import Document
from tests.e2e.edits import BAD, Story, example_stories, random_story
from tests.e2e.worlds import Simulated
from tests.plugin.forecasts import NOTES, differences_between, edited_by, foretell
from tests.scenarios.apps import tapp, template
from tests.scenarios.life import Life
from tests.sizes import size

EXAMPLES = {story.name: story for story in example_stories()}
SLOW = settings(max_examples=size(5, 15), deadline=None, suppress_health_check=list(HealthCheck))


def differences(story: Story) -> list[str]:
    """Plays a story, forecasts each edit of its running TApp, and returns all differences from the
    forecasts.
    """
    world, found = Simulated(story), []
    for number, step in enumerate(story.steps):
        forecast = None
        try:
            edited = edited_by(world.life.tapp, step) if number else None
        except NotFoundError:
            edited = None
        if edited is not None:
            forecast = foretell(world.life, edited, broken=(BAD,))
        world.life.news()
        mark = len(world.life.world.writes)
        world.play(step)
        if forecast is not None:
            writes = [w for w in world.life.world.writes[mark:] if w.kind != "TApp"]
            where = f"{story.name} step {number} ({step})"
            found += [
                f"{where}: {line}" for line in differences_between(forecast, writes, world.life)
            ]
    return found


@pytest.mark.parametrize("name", EXAMPLES)
def test_forecast_of_every_example_is_correct(name: str) -> None:
    assert differences(EXAMPLES[name]) == []


@given(st.integers(0, 999))
@SLOW
def test_forecast_of_random_edits_is_correct(seed: int) -> None:
    assert differences(random_story(seed)) == []


# Edits during the previous rollout: seed of a scenario, seconds between its edits.
UNDER_WAY = [(22, 1.5), (27, 1.5), (81, 4.0), (84, 1.5), (115, 1.5), (147, 1.5)]


@pytest.mark.parametrize(("seed", "seconds"), UNDER_WAY)
def test_forecast_of_an_edit_during_a_rollout_is_correct(seed: int, seconds: float) -> None:
    """Forecasts an edit while pods of an earlier edit still start or stop, and compares the
    writes.
    """
    story = random_story(seed)
    world = Simulated(story)
    world.play(story.steps[0])
    life = world.life
    patches = [step for step in story.steps[1:] if step.what == "patch"]
    for step in patches[:-1]:
        life.world.patch("TApp", story.name, step.patch)
        life.world.run(seconds)
    edited = edited_by(life.tapp, patches[-1])
    assert edited is not None
    forecast = foretell(life, edited, broken=(BAD,))
    life.news()
    mark = len(life.world.writes)
    world.play(patches[-1])
    writes = [w for w in life.world.writes[mark:] if w.kind != "TApp"]
    assert differences_between(forecast, writes, life) == []


FIRST = {"inPlaceUpdateStrategy": {"prePull": True}, "maxUnavailable": 1}
NEXT = "web:2"


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({"template": template(NEXT)}, ""),
        ({"template": template(NEXT)}, NEXT),
        ({"template": template(NEXT), "updateStrategy": {"maxUnavailable": 2}}, ""),
        ({"template": template(NEXT), "templates": {"1": "blue"}}, ""),
    ],
    ids=["an image", "an image that is not there", "another budget", "two images"],
)
def test_forecast_of_prepulled_images_is_correct(spec: Document, missing: str) -> None:
    """Forecasts an edit with `prePull`, and compares the writes, including those of the pods that
    pull images.

    If an image cannot be pulled, no container restarts.
    """
    life = Life().apply(
        tapp(templatePool={"blue": template("blue:1")}, updateStrategy=FIRST, replicas=5)
    )
    life.world.run(600)
    edited = {**life.tapp, "spec": merge_patch(life.tapp["spec"], spec)}
    found = foretell(life, edited, broken=(missing,) if missing else ())
    if missing:
        life.world.kubelet.levers.bad_images.add(missing)
    life.news()
    mark = len(life.world.writes)
    life.begin_patch(**spec).idle()
    writes = [w for w in life.world.writes[mark:] if w.kind != "TApp"]
    apart = differences_between(found, writes, life)
    if "updateStrategy" in spec:  # the order of two possible pullers is random
        apart = [line for line in apart if not line.startswith("order: ")]
    assert apart == []
    assert (life.restarts() == dict.fromkeys(range(5), 0)) == bool(missing)


READS = {"name": "TIER", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['tier']"}}}
TEXTS = st.sampled_from(["1", "2", "3"])
RESTARTS = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
"""A change of CPU restarts nothing, a change of memory does."""
SIZES = st.sampled_from(
    [
        {"requests": {"cpu": "1", "memory": "16Mi"}},
        {"requests": {"cpu": "2", "memory": "16Mi"}},
        {"requests": {"cpu": "2", "memory": "32Mi"}},
        {"limits": {"cpu": "2", "memory": "32Mi"}},
        {"requests": {"cpu": "1"}},
    ]
)
"""Running pods do not support all of these changes."""
KINDS = ["image", "restart", "one", "label", "first", "resources"]


@st.composite
def in_place_edits(draw: st.DrawFn) -> Document:
    """Draws an edit with up to three changes, none of which needs a new pod."""
    kinds = draw(st.sets(st.sampled_from(KINDS), min_size=1, max_size=3))
    annotations, labels = dict[str, str](), {"app": "web"}
    if "restart" in kinds:
        annotations["apps.tkestack.io/restart-in-place"] = draw(TEXTS)
    if "one" in kinds:
        annotations["apps.tkestack.io/restart-in-place.side"] = draw(TEXTS)
    if "label" in kinds:
        labels["tier"] = draw(TEXTS)
    image = f"web:{draw(TEXTS)}" if "image" in kinds else "web:1"
    size = draw(SIZES) if "resources" in kinds else SMALL
    strategy = {"prePull": "first" in kinds, "resources": draw(MODES)}
    return {
        "template": in_place(image, annotations, labels, size),
        "updateStrategy": {"inPlaceUpdateStrategy": strategy},
    }


SMALL = {"requests": {"cpu": "1", "memory": "16Mi"}}
MODES = st.sampled_from(["InPlace", "InPlace", "Ignore"])


def in_place(image: str, annotations: Document, labels: Document, size: Document) -> Document:
    """Returns a template whose container reads a label of its pod, with this metadata and the
    resources `size`.
    """
    return template(
        image,
        annotations=annotations,
        labels=labels,
        container={"env": [READS], "resources": size, "resizePolicy": RESTARTS},
        sidecars=[{"name": "side", "image": "side:1"}],
    )


@given(st.lists(in_place_edits(), min_size=2, max_size=3), st.sampled_from([1, 2]), st.booleans())
@settings(max_examples=size(4, 100), deadline=None, suppress_health_check=list(HealthCheck))
def test_forecast_of_random_in_place_edits_is_correct(
    edits: list[Document], budget: int, component: bool
) -> None:
    """Forecasts two or three random edits one after the other, and compares the writes.

    The edits change restarts, labels, images, prepulled images and resources.
    """
    life = Life(resize=component)
    life.world.kubelet.levers.resizes = True
    life.apply(
        tapp(
            template=in_place("web:1", {}, {"app": "web"}, SMALL),
            updateStrategy={"maxUnavailable": budget},
        )
    )
    for edit in edits:
        life.world.run(600)
        found = foretell(life, merge_patch(life.tapp, {"spec": edit}), resize=component)
        life.news()
        mark, born = len(life.world.writes), life.uids()
        life.begin_patch(**edit).settle()
        writes = [w for w in life.world.writes[mark:] if w.kind != "TApp"]
        apart = differences_between(found, writes, life, ignored=NOTES)
        if edit["updateStrategy"]["inPlaceUpdateStrategy"]["prePull"]:
            apart = [line for line in apart if not line.startswith("order: ")]  # random, too
        assert apart == []
        anew = {one.id for one in found.instances if one.outcome is Outcome.RECREATED}
        assert {id for id, uid in life.uids().items() if uid != born[id]} == anew


@pytest.mark.parametrize(
    "edit",
    [
        {"replicas": 5},
        {"replicas": 1},
        {"replicas": 4, "template": template(container={"env": [{"name": "A", "value": "1"}]})},
        {"podManagementPolicy": "Parallel", "replicas": 6},
    ],
    ids=["up", "down", "up and another template", "at once"],
)
def test_forecast_with_ordered_pod_management_is_correct(edit: Document) -> None:
    life = Life().apply(tapp(replicas=3, podManagementPolicy="OrderedReady"))
    found = foretell(life, merge_patch(life.tapp, {"spec": edit}))
    life.news()
    mark = len(life.world.writes)
    life.begin_patch(**edit).settle()
    writes = [write for write in life.world.writes[mark:] if write.kind != "TApp"]
    assert differences_between(found, writes, life) == []
    most = max(len((*step.created, *step.deleted)) for step in found.steps)
    assert most == (3 if edit.get("podManagementPolicy") else 1)
