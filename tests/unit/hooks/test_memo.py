"""The memo from sync to sync changes no answer, is bounded, and is found again."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from simulator.objects.objects import with_meta
from tapp.declared.model import TApp
from tests.builders import Document, as_sent, crashing, tapp, template, without_last_applied
from tests.situations import AFTER_ROLL, NOTHING, ROLL, request_in
from tests.sizes import size
from tests.unit.hooks.measured import measured
from tests.unit.hooks.memo import FORGETFUL, answers, same
from tests.unit.strategies import worlds
from tests.unit.world import Hook, World, settled

NEW = template("nginx:2")


# --- one equality ---------------------------------------------------------------------------------


@given(worlds(), st.lists(worlds(), max_size=2), st.booleans())
def test_any_sequence_of_requests_is_answered_as_without_a_memo(
    world: World, others: list[World], strip: bool
) -> None:
    """Random worlds of the same TApp, one after the other, and what becomes of the first."""
    same([world.request(), *(other.request() for other in others), world.request()])
    for _ in range(2):
        world.sync()
        world.kubelet()
        if strip and world.pods:
            first = min(world.pods)
            world.pods[first] = without_last_applied(world.pods[first])
        same([world.request()])


@given(st.lists(worlds(), min_size=2, max_size=3), st.integers(0, 30_000))
def test_nor_does_it_matter_how_little_is_remembered(found: list[World], limit: int) -> None:
    hook = Hook(memo_bytes=limit)
    requests = [world.request() for world in found]
    for number, request in enumerate(requests):
        request["parent"]["metadata"]["name"] = f"web{number % 2}"
    same([*requests, *requests], ["/sync"], hook)


def rolled(replicas: int = 12) -> list[bytes]:
    """Every request of a roll in place, of a kill, and of a scale-down with claims."""
    claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    world = World(tapp(replicas=replicas, volumeClaimTemplates=[claim]))
    bodies = []

    def settle() -> None:
        for _ in range(40):
            bodies.append(as_sent(world.request()))
            before = json.dumps([world.pods, world.parent])
            world.sync()
            world.kubelet()
            if json.dumps([world.pods, world.parent]) == before:
                return

    settle()
    world.change(template=NEW, updateStrategy={"maxUnavailable": 3})
    settle()
    world.change(templates={"1": "other", "3": "gone"}, templatePool={"other": template("b:1")})
    settle()
    world.change(statuses={"2": "Killed"}, replicas=replicas - 3)
    settle()
    return bodies


def test_a_whole_life_is_answered_as_without_a_memo() -> None:
    """Creations with claims, a roll, other templates, a typo, a kill, a scale-down."""
    bodies = rolled()
    assert len(bodies) >= 15
    same(bodies, ["/sync"])
    same(bodies[::-1], ["/sync"])


def test_threads_at_once_are_answered_as_one_after_the_other() -> None:
    """P1, with a memo that is always full and always thrown away."""
    bodies = rolled() * 3
    alone = [answers(body, "/sync", FORGETFUL) for body in bodies]
    for limit in (0, 20_000, 1 << 26):
        answer = partial(answers, path="/sync", hook=Hook(memo_bytes=limit))
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(answer, bodies)) == alone


# --- a text that is nearly the same ---------------------------------------------------------------


def pods_of(document: Document) -> dict[str, Document]:
    pods: dict[str, Document] = document["children"]["Pod.v1"]
    return pods


def _drop(key: str) -> Callable[[Document], Any]:
    return lambda document: pods_of(document).pop(key)


def _crash(key: str) -> Callable[[Document], Any]:
    return lambda document: pods_of(document).update({key: crashing(pods_of(document)[key])})


def _add(name: str) -> Callable[[Document], Any]:
    def add(document: Document) -> None:
        pod = with_meta(pods_of(document)["shop/web-0"], name=name)
        pods_of(document)[f"shop/{name}"] = pod

    return add


def _nest(document: Document) -> None:
    """A pod that holds a copy of its neighbour, key and all, where anything may stand."""
    pods = pods_of(document)
    pods["shop/web-1"]["spec"]["extra"] = {"a": 1, "shop/web-2": pods["shop/web-2"]}


def _nest_for_the_missing(document: Document) -> None:
    _nest(document)
    del pods_of(document)["shop/web-2"]


CHANGES: dict[str, Callable[[Document], Any]] = {
    "nothing": lambda _: None,
    "the first pod": _crash("shop/web-0"),
    "a pod in the middle": _crash("shop/web-2"),
    "the last pod": _crash("shop/web-4"),
    "the first pod is gone": _drop("shop/web-0"),
    "a pod in the middle is gone": _drop("shop/web-2"),
    "the last pod is gone": _drop("shop/web-4"),
    "all pods are gone": lambda document: pods_of(document).clear(),
    "a pod before all": _add("a-1"),
    "a pod after all": _add("zzz"),
    "a pod in between": _add("web-3x"),
    "names that JSON escapes": _add('web-2"%\\ü'),
    "a number that is none": _add("web-03"),
    "a copy of another pod in a pod": _nest,
    "a copy of a pod that is not there": _nest_for_the_missing,
    "the spec": lambda document: document["parent"]["spec"].update(template=NEW),
    "the spec is odd": lambda document: document["parent"]["spec"].update(replicas="many"),
    "a template called like the mark": lambda document: document["parent"]["spec"].update(
        templatePool={"Pod.v1": template("x:1")}
    ),
    "pods in the parent": lambda document: document["parent"].update(
        children={"Pod.v1": pods_of(document)}
    ),
    "only pods in the parent": lambda document: (
        document["parent"].update({"Pod.v1": pods_of(document)}),
        document.update(children={"PersistentVolumeClaim.v1": {}}),
    ),
    "another namespace's pod": lambda document: pods_of(document).update(
        {"shop/web-2": with_meta(pods_of(document)["shop/web-2"], namespace="other")}
    ),
    "a name twice": lambda document: pods_of(document).update(
        {"shop/web-2x": pods_of(document)["shop/web-2"]}
    ),
    "an odd pod": lambda document: pods_of(document)["shop/web-2"].update(spec=None),
    "a pod that is none": lambda document: pods_of(document).update({"shop/web-2": 5}),
    "another kind": lambda document: document["children"].update({"Job.v1": {"a": {}}}),
    "an unknown field": lambda document: document.update(surprise={"Pod.v1": {}}),
    "no related": lambda document: document.pop("related"),
    "no parent": lambda document: document.pop("parent"),
    "no children": lambda document: document.pop("children"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_changed_is_answered_as_without_a_memo(change: Callable[[Document], Any]) -> None:
    before = settled(replicas=5).request()
    after = json.loads(as_sent(before))
    change(after)
    same([before, after, before, after])


def marked_late(text: bytes) -> bytes:
    """Pods under a key with a blank, so that the mark is first seen in the parent, on others."""
    document = json.loads(text)
    pods = document["children"]["Pod.v1"]
    children = {key: pod for key, pod in pods.items() if key != "shop/web-2"}
    rest = {"parent": document["parent"] | {"Pod.v1": pods}, "related": {}}
    before = b'{"children":{"Pod.v1" :' + msgspec.json.encode(children) + b"},"
    return before + msgspec.json.encode(rest)[1:]


TEXTS: dict[str, Callable[[bytes], bytes]] = {
    "pods twice, with escapes": lambda text: text.replace(
        b'}},"related"', b'},"Po\\u0064.v1":{}},"related"'
    ),
    "blanks": lambda text: json.dumps(json.loads(text)).encode(),
    "indented": lambda text: json.dumps(json.loads(text), indent=1).encode(),
    "other order": lambda text: json.dumps(json.loads(text), sort_keys=True).encode(),
    "compact, children first": lambda text: msgspec.json.encode(
        msgspec.json.decode(text), order="sorted"
    ),
    "children first, and the mark in the parent": marked_late,
    "cut": lambda text: text[:-200],
    "cut in a pod": lambda text: text[: text.index(b'"shop/web-3"') + 300],
    "more behind": lambda text: text + b"{}",
    "a comma too many": lambda text: text.replace(b',"shop/web-3"', b',,"shop/web-3"'),
    "a comma too few": lambda text: text.replace(b',"shop/web-3"', b'"shop/web-3"'),
    "a comma at the end": lambda text: text.replace(b'}},"related"', b',}},"related"'),
    "a key twice": lambda text: text.replace(b'"shop/web-3"', b'"shop/web-2"'),
    "a key twice, escaped": lambda text: text.replace(b'"shop/web-3"', b'"shop/web-\\u0032"'),
    "children twice": lambda text: text.replace(
        b',"related":', b',"children":{"Pod.v1":{}},"related":'
    ),
    "pods twice": lambda text: text.replace(b'}},"related"', b'},"Pod.v1":{}},"related"'),
    "parent twice": lambda text: (
        text[:-1] + text[text.index(b',"parent"') : text.index(b',"chi')] + b"}"
    ),
    "no UTF-8": lambda text: text.replace(b'"uid":"', b'"uid":"\xff', 3),
    "no UTF-8 in a pod's labels": lambda text: text.replace(b'"app":"', b'"app":"\xff'),
    "nothing": lambda _: b"",
    "null": lambda _: b"null",
}


@pytest.mark.parametrize("change", TEXTS.values(), ids=TEXTS)
def test_a_text_that_is_not_as_go_writes_it_is_answered_as_without_a_memo(
    change: Callable[[bytes], bytes],
) -> None:
    text = as_sent(settled(replicas=5).request())
    same([text, change(text), text])


def test_a_body_that_was_cut_off_is_refused_wherever_it_ends() -> None:
    """A client that hangs up in the middle: in a key, too."""
    text = as_sent(settled(replicas=3).request())
    at = text.index(b'"shop/web-1"')
    same([text, *(text[: at + more] for more in range(-2, 20))], ["/sync"])


@pytest.mark.parametrize("spelled", ["we\\qb-3", 'we"b-3', "we\nb-3", "we\\u0062-3"])
def test_a_key_that_json_spells_otherwise_is_no_known_key(spelled: str) -> None:
    """The same bytes in a key that is no JSON, or another one."""
    document = settled(replicas=5).request()
    pods_of(document)[f"shop/{spelled}"] = pods_of(document).pop("shop/web-3")
    text = as_sent(document)
    key = json.dumps(f"shop/{spelled}").encode()
    same([text, text.replace(key, f'"shop/{spelled}"'.encode()), text], ["/sync"])


def test_a_tapp_is_known_by_its_namespace_and_name() -> None:
    """No API server allows a `/` in either; whoever sends one gets no other TApp's pods."""
    document = settled(replicas=2).request()
    other = json.loads(as_sent(document).replace(b'"shop"', b'"a/b"'))
    mine = json.loads(as_sent(other))
    mine["parent"]["metadata"] |= {"namespace": "a", "name": "b/web"}
    same([other, mine, other], ["/sync"])


@given(st.data())
def test_any_damage_to_a_text_is_answered_as_without_a_memo(data: st.DataObject) -> None:
    """Bytes cut out, doubled or replaced, anywhere in a request whose pods are known."""
    at, end = sorted(data.draw(st.tuples(*[st.integers(0, len(TEXT))] * 2)))
    put = data.draw(st.sampled_from([b"", b",", b"}", b'"', b"{}", TEXT[at:end] * 2, b"\\"]))
    same([TEXT, TEXT[:at] + put + TEXT[end:]], ["/sync"])


TEXT = as_sent(settled(replicas=3).request())


# --- what is found again --------------------------------------------------------------------------


def read(hook_memo: Memo, body: bytes) -> int:
    """The number of pods that a request made the service read."""
    return Request(body, TApp, hook_memo).read


def test_only_what_changed_is_read_again() -> None:
    """One pod, one spec, a pod less: the rest is known by its text."""
    memo, world = Memo(1 << 20), settled(replicas=20)
    assert read(memo, as_sent(world.request())) == 20
    assert read(memo, as_sent(world.request())) == 0
    for id in (0, 7, 19):
        world.modify(id, crashing)
        assert read(memo, as_sent(world.request())) == 1
        assert read(memo, as_sent(world.request())) == 0
    world.change(template=NEW)
    assert read(memo, as_sent(world.request())) == 0
    del world.pods["web-3"]
    assert read(memo, as_sent(world.request())) == 0
    assert read(memo, json.dumps(world.request()).encode()) == 19  # other blanks, other texts
    assert read(memo, json.dumps(world.request()).encode()) == 0


def test_templates_are_resolved_once_for_a_spec() -> None:
    memo, world = Memo(1 << 20), settled(replicas=5)
    first, second = (
        world_of(Request(as_sent(world.request()), TApp, memo)).templates for _ in range(2)
    )
    assert first is second
    world.change(minReadySeconds=5)
    assert world_of(Request(as_sent(world.request()), TApp, memo)).templates is not first


def test_pods_that_are_not_ours_are_not_remembered() -> None:
    """They are compared field by field with their template, so they are large, and few."""
    memo, world = Memo(1 << 20), settled(replicas=4)
    world.modify(1, lambda pod: {**pod, "spec": None})
    world.modify(2, lambda pod: with_meta(without_last_applied(pod), labels={"app": "web"}))
    for expected in (4, 2, 2):
        assert read(memo, as_sent(world.request())) == expected


# --- its bound ------------------------------------------------------------------------------------


def test_it_forgets_the_tapps_that_did_not_come_for_the_longest_time() -> None:
    body = as_sent(settled(replicas=2).request())
    alone = Memo(1 << 20)
    read(alone, body)
    memo = Memo(alone.size * 5 // 2)  # two of them, not three
    for app, known in (
        ("a", False),
        ("b", False),
        ("a", True),
        ("c", False),
        ("a", True),
        ("b", False),
        ("a", True),
        ("c", False),
    ):
        changed = read(memo, body.replace(b"web", b"web" + app.encode()))
        assert (app, changed) == (app, 0 if known else 2)
        assert memo.size <= alone.size * 5 // 2


def test_what_alone_is_more_than_fits_is_not_remembered() -> None:
    body = as_sent(settled(replicas=2).request())
    alone = Memo(1 << 20)
    read(alone, body)
    memo = Memo(alone.size - 1)
    assert [read(memo, body), read(memo, body), memo.size] == [2, 2, 0]


@pytest.mark.parametrize(
    ("situation", "most"), [(NOTHING, 7_168), (AFTER_ROLL, 8_192), (ROLL, 8_192)]
)
def test_a_pod_takes_no_more_than_7_kb_and_an_updated_one_8(situation: str, most: int) -> None:
    """An update leaves its record and the template's images in the pod's annotations."""
    count = size(50, 1_000)
    found, said = measured("held", request_in(situation, count)[1])
    assert found / count <= most
    assert found <= said <= 2.5 * found


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("containers", [1, 3, 10])
def test_what_it_takes_is_what_it_says(containers: int, crash: bool) -> None:
    """The bound is held to `size`: it must be true for large pods, and for those that say a lot."""
    world = settled(replicas=size(20, 200))
    for name, pod in world.pods.items():
        changed = crashing(pod) if crash else pod
        (status,) = changed["status"]["containerStatuses"]
        (container,) = changed["spec"]["containers"]
        numbers = range(containers)
        changed["status"]["containerStatuses"] = [
            {**status, "name": f"c{number}", "containerID": f"containerd://{name}{number:064}"}
            for number in numbers
        ]
        changed["spec"]["containers"] = [{**container, "name": f"c{n}"} for n in numbers]
        world.pods[name] = changed
    found, said = measured("held", as_sent(world.request()))
    assert 0.7 * found <= said <= 1.7 * found
