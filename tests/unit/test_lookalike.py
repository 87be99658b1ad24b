"""Pods that look alike are answered once, with the bytes that each of them would get (P1)."""

import gc
import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from hooks import wire
from hooks.wire import Request
from simulator.objects import with_meta
from tapp.lookalike import MEMORY, Looks, Memory
from tapp.model import TApp
from tests.builders import Document, as_sent, running, tapp, template, without_last_applied
from tests.unit.world import Hook, World

HOOK = Hook()
TEXTS = [
    "web-0",
    "(what ran before)",
    "web-1",
    "web-10",
    "web-1.web",
    "xweb-1",
    "web-",
    "0",
    "1",
    "node-1",
    '"nodeName":"node-1"',
    '\\"nodeName\\":\\"node-2\\"',
    '"tapp_instance_key":"1"',
    "kube-api-access-abcde",
    "%b %s %%",
    '","',
    "ü€𝄞",
    "\\",
    "\\u0041",
    "",
]


def answers(request: Document | bytes, hook: str = "/sync") -> tuple[bytes, bytes]:
    """The answer as it is made, and as it would be made pod by pod."""
    body = request if isinstance(request, bytes) else as_sent(request)
    together = HOOK.post(hook, body)
    assert together.status_code == 200
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "Looks", lambda *app: Looks(*app, groups=0))
        return together.data, HOOK.post(hook, body).data


def spoken(text: str) -> Document:
    """A template that says something in many places."""
    return template(
        annotations={"says": text, "apps.kubernetes.io/note": f"x{text}x"},
        container={
            "env": [{"name": "SAYS", "value": text}, {"name": "TWICE", "value": text * 2}],
            "args": [text, f"--peer={text}"],
        },
        nodeSelector={"note": "n"},
    )


def on_nodes(world: World, nodes: list[int]) -> None:
    """Pods run on different nodes."""
    for index, name in enumerate(list(world.pods)):
        pod = running(world.pods[name])
        node = f"node-{nodes[index % len(nodes)]}"
        world.pods[name] = {**pod, "spec": {**pod["spec"], "nodeName": node}}


@pytest.mark.parametrize("text", TEXTS)
def test_templates_that_speak_of_pods_and_nodes_confuse_nobody(text: str) -> None:
    strip = len(text) % 2 == 1
    world = World(tapp(replicas=12, template=spoken(text), serviceName="svc"), strip=strip)
    world.sync()
    for _ in range(2):
        on_nodes(world, [1, 2, 10])
        together, alone = answers(world.request())
        assert together == alone
        world.sync()
    world.change(template=spoken(f"{text}!")).sync()
    together, alone = answers(world.request())
    assert together == alone
    together, alone = answers(world.request(finalizing=True), "/finalize")
    assert together == alone


EDITS = st.sampled_from(TEXTS)


@given(
    st.lists(st.tuples(st.integers(0, 5), EDITS, EDITS), max_size=4),
    st.lists(st.integers(1, 12), min_size=1, max_size=4),
    EDITS,
    st.booleans(),
)
def test_pods_that_differ_anywhere_are_answered_each_by_itself(
    edits: list[tuple[int, str, str]], nodes: list[int], text: str, changed: bool
) -> None:
    world = World(tapp(replicas=6, template=spoken(text), updateStrategy={"maxUnavailable": 3}))
    world.sync()
    on_nodes(world, nodes)
    world.sync()
    if changed:
        new = json.loads(json.dumps(spoken(text)).replace("nginx:1.25", "nginx:2"))
        world.change(template=new).sync()
        world.sync()
    for id, key, value in edits:
        pod = world.pod(id)
        annotations = {**pod["metadata"]["annotations"], f"note/{key}": value}
        labels = {**pod["metadata"]["labels"], "said": value}
        world.pods[f"web-{id}"] = with_meta(pod, annotations=annotations, labels=labels)
    together, alone = answers(world.request())
    assert together == alone


# --- what is remembered from request to request ---------------------------------------------------


def test_a_pod_that_looks_like_none_of_the_last_request_is_read_anew() -> None:
    world = World(tapp(replicas=3)).settle()
    before, _ = answers(world.request())
    again, alone = answers(world.request())
    assert before == again == alone
    note = world.modify(1, lambda pod: with_meta(pod, annotations={"apps.tkestack.io/x": "y"}))
    assert len(set(answers(note.request()))) == 1


@pytest.mark.parametrize(
    "record",
    [
        'broken","note/x":"{\\"a\\":1}',
        '{}\\\\","note/x":"{}',
        '{\\n}","note/x":"{}',
        '{}","note/x":"a","note/y":"{}',
    ],
)
def test_a_record_that_ends_elsewhere_hides_no_other_annotation(record: str) -> None:
    """Written by hand into web-1, behind a pod whose record is whole."""
    world = World(tapp(replicas=2)).settle()
    world.change(template=template("nginx:2")).settle()
    for id in range(2):
        world.modify(id, without_last_applied)
    text = as_sent(world.request())
    whole = b'"apps.tkestack.io/in-place-update":"'
    start = text.rindex(whole) + len(whole)
    end = text.index(b'}","', start) + 1
    text = text[:start] + record.encode() + text[end:]
    together, alone = answers(text)
    assert together == alone


@pytest.mark.parametrize("image", ["nginx", "web-0", "x/web-1", "tapp_instance_key", "nodeName"])
def test_updates_in_place_are_answered_as_each_pod_would_be(image: str) -> None:
    """Also where images are called like pods, or like what is a pod's own."""
    strategy = {"maxUnavailable": 12}
    sidecars = [{"name": "log", "image": f"{image}:log"}]
    bodies = [template(f"{image}:{tag}", sidecars=sidecars) for tag in range(4)]
    world = World(tapp(replicas=12, template=bodies[0], updateStrategy=strategy)).settle()
    for body in bodies[1:]:
        on_nodes(world, [1, 2, 10])
        world.change(template=body)
        world.sync()  # the first sync after a change in the middle of a roll-out only looks
        together, alone = answers(world.request())
        assert together == alone
        world.sync()
        assert world.container(11)["image"] == body["spec"]["containers"][0]["image"]
        world.kubelet(ready=body is not bodies[2])


def group(size: int) -> Any:
    return SimpleNamespace(size=size)


def test_the_memory_forgets_who_did_not_come_for_the_longest_time() -> None:
    memory, places = Memory(100), (1, 2, 3)
    memory.keep("a", [group(40)], places)
    memory.keep("b", [group(40)], places)
    memory.keep("a", [group(50)], places)
    memory.keep("c", [group(10)], places)
    assert [bool(memory.recall(app)[0]) for app in "abc"] == [True, True, True]
    memory.keep("d", [group(20)], places)
    assert [bool(memory.recall(app)[0]) for app in "abcd"] == [True, False, True, True]
    memory.keep("e", [group(101)], places)
    assert [bool(memory.recall(app)[0]) for app in "abcde"] == [True, False, True, True, False]
    memory.keep("f", [group(100)], places)
    assert memory.recall("f")[1] == places
    memory.cache_clear()
    assert memory.recall("f") == ([], (-1, -1, -1))


def test_nothing_of_a_request_is_pinned() -> None:
    """What is remembered is copied out of the request: its body can be freed."""
    world = World(tapp(name="pin", replicas=3)).settle()
    MEMORY.cache_clear()
    Request(as_sent(world.request()), TApp)
    (look,) = [group.look for groups, _ in MEMORY._held.values() for group in groups]
    assert not [item for item in gc.get_referents(look.__dict__) if isinstance(item, Raw)]
