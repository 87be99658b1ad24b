"""Tests the memory that a cached TApp takes: the estimate that TAPP_MEMO_BYTES limits must be
right.
"""

import gc
import tracemalloc
from typing import Any

import pytest

from hooks.service.settings import Settings
from hooks.sync import sync
from hooks.wire.memo import Memo
from hooks.wire.request import Request
from simulator.objects.objects import with_meta
from tapp.declared.model import TApp
from tests.builders import NOW, Document, as_sent, tapp, template
from tests.sizes import size
from tests.unit.hooks.measure_memory import measured
from tests.unit.world import Hook, World

OPTIONS = Settings().options
MANY = size(30, 500)
INDEX = "$(tapp.index)"


def template_with_index(count: int, text: str = "x") -> Document:
    """Returns a template with `count` variables with this text, and one with a placeholder for the
    instance number.
    """
    variables = [{"name": f"V{number}", "value": text} for number in range(count)]
    return template(container={"env": [*variables, {"name": "OWN", "value": INDEX}]})


LONG = "x" * 50_000
SPECS: dict[str, Document] = {
    "no placeholder": {},
    "small template with a placeholder": {"template": template_with_index(1)},
    "placeholder in a long text": {"template": template(annotations={"own": LONG + INDEX})},
    "placeholder next to a long text": {
        "template": template(annotations={"own": INDEX, "large": LONG})
    },
    "placeholder in a text that is not ASCII": {
        "template": template(annotations={"own": "\U0001f600" * 9_000 + INDEX})
    },
    "placeholder next to many variables": {"template": template_with_index(800)},
    "placeholders in labels and annotations": {
        "template": template(
            labels={f"l{number}": f"v{INDEX}" for number in range(100)},
            annotations={f"a{number}": INDEX for number in range(100)},
        )
    },
    "placeholders in images": {
        "template": template(sidecars=[{"name": f"c{n}", "image": f"i:{INDEX}"} for n in range(50)])
    },
    "long values": {
        "template": template(container={"env": [{"name": "A", "value": "$(tapp.values.a)"}]}),
        "values": {str(number): {"a": f"{number}" * 300} for number in range(MANY)},
    },
    "many empty lists": {"template": template(x=[[]] * 30_000)},
    "many templates": {
        "templatePool": {f"t{number}": template(f"a:{number}") for number in range(300)},
        "templates": {str(number): f"t{number}" for number in range(MANY)},
    },
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_spec_takes_at_most_its_estimate(spec: Document) -> None:
    """Measures the cache after a sync of TApps with several templates: it takes at most 10% more
    than estimated.

    Otherwise a few TApps with large templates would take a multiple of the limit.
    """
    taken, estimate = measured("synced", as_sent(World(tapp(replicas=MANY, **spec)).request()))
    assert taken <= 1.1 * estimate


def _annotated(pod: Document, **notes: str) -> Document:
    return with_meta(pod, annotations={**pod["metadata"]["annotations"], **notes})


PODS: dict[str, dict[str, str]] = {
    "long failures annotation": {"apps.tkestack.io/failures": LONG},
    "long lost-node annotation": {"apps.tkestack.io/lost-node": LONG},
    "long drain annotation": {"apps.tkestack.io/drain": LONG},
    "restart of many containers": {
        f"apps.tkestack.io/restart-instance.{number}": "x" for number in range(500)
    },
    "many images of the template": {
        "apps.tkestack.io/template-images": '{"a":"b"' + ',"c":"d"' * 3_000 + "}"
    },
}


@pytest.mark.parametrize("notes", PODS.values(), ids=PODS)
def test_pod_with_long_annotations_takes_at_most_three_times_its_estimate(
    notes: dict[str, str],
) -> None:
    """Measures the cache after a sync of pods with long annotations, with the factor of
    docs/sizing.md.
    """
    world = World(tapp(replicas=MANY)).settle()
    for name, pod in world.pods.items():
        each: dict[str, Any] = {
            key: f"{name}{text}" if text == LONG else text for key, text in notes.items()
        }
        world.pods[name] = _annotated(pod, **each)
    taken, estimate = measured("synced", as_sent(world.request()))
    assert taken <= 3 * estimate


def test_decisions_of_a_sync_add_nothing_to_the_cache() -> None:
    """Compares the size of the cache after a request was only read with its size after the sync.

    A partition keeps all instances at an earlier template with a large text and a placeholder. Each
    sync fills in such templates of the history again and does not cache them, because the limit
    could not account for their size. So a sync may add less than 1 KB for each instance.
    """
    parent = tapp(
        replicas=MANY,
        template=template(annotations={"own": LONG[:9_000] + INDEX}),
        updateStrategy={"partition": "100%"},
    )
    world = World(parent, hook=Hook(), history=True).settle()
    world.change(template=template("nginx:2")).sync()
    request = as_sent(world.request())
    read, synced = (measured(what, request)[0] for what in ("held", "synced"))
    assert synced - read < MANY * 1_000


def test_cache_of_filled_in_templates_stays_within_its_limit() -> None:
    own = template(annotations={"own": LONG + INDEX})
    limit = 15 * MANY * len(LONG) // 2  # enough for a few TApps, not for all
    memo = Memo(limit)
    gc.collect()
    tracemalloc.start()
    for number in range(8):
        parent = with_meta(tapp(replicas=MANY, template=own), name=f"web{number}")
        sync(Request(as_sent(World(parent).request()), TApp, memo), OPTIONS, NOW)
        assert 0 < memo.size <= limit
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held <= 1.5 * limit
