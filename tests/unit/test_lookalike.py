"""Pods that look alike are answered once, with the bytes that each of them would get (P1)."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks import wire
from simulator.objects import with_meta
from tapp.lookalike import Looks
from tests.builders import Document, running, tapp, template
from tests.unit.world import Hook, World

HOOK = Hook()
TEXTS = [
    "web-0",
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


def answers(request: Document, hook: str = "/sync") -> tuple[bytes, bytes]:
    """The answer as it is made, and as it would be made pod by pod."""
    body = json.dumps(request, ensure_ascii=False).encode()
    together = HOOK.post(hook, body)
    assert together.status_code == 200
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wire, "Looks", lambda app: Looks(app, groups=0))
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
