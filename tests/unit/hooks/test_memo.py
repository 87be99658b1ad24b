"""Tests the memo, which is kept between syncs: it changes no response, has a size limit, and saves
work.
"""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hooks.service.settings import Settings
from hooks.sync import sync
from hooks.wire.memo import Memo
from hooks.wire.request import Request, world_of
from simulator.objects.objects import with_meta
from tapp.declared.model import TApp
from tapp.words.vocabulary import LAST_APPLIED
from tests.builders import (
    GROWING,
    NOW,
    Document,
    as_sent,
    crashing,
    tapp,
    template,
    without_last_applied,
)
from tests.sizes import size
from tests.typical_requests import AFTER_ROLL, NOTHING, ROLL, request_in
from tests.unit.hooks.measure_memory import measured
from tests.unit.hooks.memo import WITHOUT_MEMO, assert_same_responses, response_to
from tests.unit.strategies import worlds
from tests.unit.world import Hook, World, settled

NEW = template("nginx:2")


# --- responses with and without a memo are equal --------------------------------------------------


@given(worlds(), st.lists(worlds(), max_size=2), st.booleans())
def test_random_requests_get_the_same_responses_with_and_without_a_memo(
    world: World, others: list[World], strip: bool
) -> None:
    """Compares the responses to random states of one TApp, and to later states of the first one."""
    assert_same_responses(
        [world.request(), *(other.request() for other in others), world.request()]
    )
    for _ in range(2):
        world.sync()
        world.kubelet()
        if strip and world.pods:
            first = min(world.pods)
            world.pods[first] = without_last_applied(world.pods[first])
        assert_same_responses([world.request()])


@given(st.lists(worlds(), min_size=2, max_size=3), st.integers(0, 30_000))
def test_random_requests_get_the_same_responses_with_a_small_memo(
    found: list[World], limit: int
) -> None:
    hook = Hook(memo_bytes=limit)
    requests = [world.request() for world in found]
    for number, request in enumerate(requests):
        request["parent"]["metadata"]["name"] = f"web{number % 2}"
    assert_same_responses([*requests, *requests], ["/sync"], hook)


def requests_of_a_life(replicas: int = 12) -> list[bytes]:
    """Returns the requests of a TApp's life: a rollout in place, a kill, and a scale-down with
    claims.
    """
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


def test_life_of_a_tapp_gets_the_same_responses_with_and_without_a_memo() -> None:
    bodies = requests_of_a_life()
    assert len(bodies) >= 15
    assert_same_responses(bodies, ["/sync"])
    assert_same_responses(bodies[::-1], ["/sync"])


def test_concurrent_requests_get_the_same_responses_as_sequential_ones() -> None:
    """Posts requests from eight threads, with memos of several sizes: each response is the expected
    one.

    This is promise P1 (docs/guarantees.md), also with a memo that is always full.
    """
    bodies = requests_of_a_life() * 3
    alone = [response_to(body, "/sync", WITHOUT_MEMO) for body in bodies]
    for limit in (0, 20_000, 1 << 26):
        answer = partial(response_to, path="/sync", hook=Hook(memo_bytes=limit))
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(answer, bodies)) == alone


# --- requests that differ a little ----------------------------------------------------------------


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
    """Puts a copy of a pod, with its key, into an unknown field of another pod."""
    pods = pods_of(document)
    pods["shop/web-1"]["spec"]["extra"] = {"a": 1, "shop/web-2": pods["shop/web-2"]}


def _nest_for_the_missing(document: Document) -> None:
    _nest(document)
    del pods_of(document)["shop/web-2"]


CHANGES: dict[str, Callable[[Document], Any]] = {
    "no change": lambda _: None,
    "first pod crashes": _crash("shop/web-0"),
    "middle pod crashes": _crash("shop/web-2"),
    "last pod crashes": _crash("shop/web-4"),
    "first pod gone": _drop("shop/web-0"),
    "middle pod gone": _drop("shop/web-2"),
    "last pod gone": _drop("shop/web-4"),
    "all pods gone": lambda document: pods_of(document).clear(),
    "pod before all others": _add("a-1"),
    "pod after all others": _add("zzz"),
    "pod in between": _add("web-3x"),
    "name with escapes": _add('web-2"%\\ü'),
    "invalid instance number": _add("web-03"),
    "copy of another pod in a pod": _nest,
    "copy of a missing pod in a pod": _nest_for_the_missing,
    "spec changed": lambda document: document["parent"]["spec"].update(template=NEW),
    "spec invalid": lambda document: document["parent"]["spec"].update(replicas="many"),
    "template named like the kind of pods": lambda document: document["parent"]["spec"].update(
        templatePool={"Pod.v1": template("x:1")}
    ),
    "pods in the parent": lambda document: document["parent"].update(
        children={"Pod.v1": pods_of(document)}
    ),
    "only pods in the parent": lambda document: (
        document["parent"].update({"Pod.v1": pods_of(document)}),
        document.update(children={"PersistentVolumeClaim.v1": {}}),
    ),
    "pod of another namespace": lambda document: pods_of(document).update(
        {"shop/web-2": with_meta(pods_of(document)["shop/web-2"], namespace="other")}
    ),
    "pod name twice": lambda document: pods_of(document).update(
        {"shop/web-2x": pods_of(document)["shop/web-2"]}
    ),
    "null spec of a pod": lambda document: pods_of(document)["shop/web-2"].update(spec=None),
    "pod is a number": lambda document: pods_of(document).update({"shop/web-2": 5}),
    "unknown kind": lambda document: document["children"].update({"Job.v1": {"a": {}}}),
    "unknown field": lambda document: document.update(surprise={"Pod.v1": {}}),
    "no related": lambda document: document.pop("related"),
    "no parent": lambda document: document.pop("parent"),
    "no children": lambda document: document.pop("children"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_changed_request_gets_the_same_response_with_and_without_a_memo(
    change: Callable[[Document], Any],
) -> None:
    before = settled(replicas=5).request()
    after = json.loads(as_sent(before))
    change(after)
    assert_same_responses([before, after, before, after])


def pods_in_the_parent(text: bytes) -> bytes:
    """Returns a request whose parent has a key `"Pod.v1":` with pods, before the real one.

    The real key has a blank before its colon, so that a search for the text finds the wrong one.
    """
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
    "keys in another order": lambda text: json.dumps(json.loads(text), sort_keys=True).encode(),
    "compact, children first": lambda text: msgspec.json.encode(
        msgspec.json.decode(text), order="sorted"
    ),
    "children first, pods in the parent": pods_in_the_parent,
    "truncated": lambda text: text[:-200],
    "truncated in a pod": lambda text: text[: text.index(b'"shop/web-3"') + 300],
    "text after the end": lambda text: text + b"{}",
    "two commas": lambda text: text.replace(b',"shop/web-3"', b',,"shop/web-3"'),
    "missing comma": lambda text: text.replace(b',"shop/web-3"', b'"shop/web-3"'),
    "trailing comma": lambda text: text.replace(b'}},"related"', b',}},"related"'),
    "key twice": lambda text: text.replace(b'"shop/web-3"', b'"shop/web-2"'),
    "key twice, once escaped": lambda text: text.replace(b'"shop/web-3"', b'"shop/web-\\u0032"'),
    "children twice": lambda text: text.replace(
        b',"related":', b',"children":{"Pod.v1":{}},"related":'
    ),
    "pods twice": lambda text: text.replace(b'}},"related"', b'},"Pod.v1":{}},"related"'),
    "parent twice": lambda text: (
        text[:-1] + text[text.index(b',"parent"') : text.index(b',"chi')] + b"}"
    ),
    "invalid UTF-8": lambda text: text.replace(b'"uid":"', b'"uid":"\xff', 3),
    "invalid UTF-8 in labels of a pod": lambda text: text.replace(b'"app":"', b'"app":"\xff'),
    "empty": lambda _: b"",
    "null": lambda _: b"null",
}


@pytest.mark.parametrize("change", TEXTS.values(), ids=TEXTS)
def test_json_in_another_form_gets_the_same_response_with_and_without_a_memo(
    change: Callable[[bytes], bytes],
) -> None:
    text = as_sent(settled(replicas=5).request())
    assert_same_responses([text, change(text), text])


def test_truncated_body_gets_the_same_error_with_and_without_a_memo() -> None:
    """Cuts the body of a request at any point around a pod's key, as if the client had
    disconnected.
    """
    text = as_sent(settled(replicas=3).request())
    at = text.index(b'"shop/web-1"')
    assert_same_responses([text, *(text[: at + more] for more in range(-2, 20))], ["/sync"])


@pytest.mark.parametrize(
    "spelled",
    ["we\\qb-3", 'we"b-3', "we\nb-3", "we\\u0062-3"],
    ids=["invalid escape", "quote", "line break", "escaped letter"],
)
def test_key_with_escapes_gets_the_same_response_with_and_without_a_memo(spelled: str) -> None:
    """Replaces the key of a pod by bytes that are invalid JSON, or that stand for another name."""
    document = settled(replicas=5).request()
    pods_of(document)[f"shop/{spelled}"] = pods_of(document).pop("shop/web-3")
    text = as_sent(document)
    key = json.dumps(f"shop/{spelled}").encode()
    assert_same_responses([text, text.replace(key, f'"shop/{spelled}"'.encode()), text], ["/sync"])


def test_slash_in_a_name_does_not_mix_up_two_tapps() -> None:
    """Sends requests for the TApps `web` in `a/b` and `b/web` in `a`: each gets its own response.

    The API server allows no `/` in names, but a request may contain one.
    """
    document = settled(replicas=2).request()
    other = json.loads(as_sent(document).replace(b'"shop"', b'"a/b"'))
    mine = json.loads(as_sent(other))
    mine["parent"]["metadata"] |= {"namespace": "a", "name": "b/web"}
    assert_same_responses([other, mine, other], ["/sync"])


@given(st.data())
def test_damaged_request_gets_the_same_response_with_and_without_a_memo(
    data: st.DataObject,
) -> None:
    """Removes, doubles or replaces random bytes of a request whose pods are in the memo, and
    compares responses.
    """
    at, end = sorted(data.draw(st.tuples(*[st.integers(0, len(TEXT))] * 2)))
    put = data.draw(st.sampled_from([b"", b",", b"}", b'"', b"{}", TEXT[at:end] * 2, b"\\"]))
    assert_same_responses([TEXT, TEXT[:at] + put + TEXT[end:]], ["/sync"])


TEXT = as_sent(settled(replicas=3).request())


# --- saved work -----------------------------------------------------------------------------------


def pods_read(hook_memo: Memo, body: bytes) -> int:
    """Returns the number of pods that the service parses for a request; it takes the others from
    the memo.
    """
    return Request(body, TApp, hook_memo).read


def test_only_changed_pods_are_parsed_again() -> None:
    memo, world = Memo(1 << 20), settled(replicas=20)
    assert pods_read(memo, as_sent(world.request())) == 20
    assert pods_read(memo, as_sent(world.request())) == 0
    for id in (0, 7, 19):
        world.modify(id, crashing)
        assert pods_read(memo, as_sent(world.request())) == 1
        assert pods_read(memo, as_sent(world.request())) == 0
    world.change(template=NEW)
    assert pods_read(memo, as_sent(world.request())) == 0
    del world.pods["web-3"]
    assert pods_read(memo, as_sent(world.request())) == 0
    assert pods_read(memo, json.dumps(world.request()).encode()) == 19  # other blanks
    assert pods_read(memo, json.dumps(world.request()).encode()) == 0


def test_templates_of_an_unchanged_spec_are_reused() -> None:
    memo, world = Memo(1 << 20), settled(replicas=5)
    first, second = (
        world_of(Request(as_sent(world.request()), TApp, memo)).templates for _ in range(2)
    )
    assert first is second
    world.change(minReadySeconds=5)
    assert world_of(Request(as_sent(world.request()), TApp, memo)).templates is not first


def test_templates_stay_as_they_are_during_a_sync() -> None:
    """Compares the templates of a spec before and after a sync: a plan must not add to them.

    Syncs share the templates. A pod beyond `spec.replicas` has a template of its own, which a plan
    must not add either.
    """
    body = template(container={"env": [{"name": "OWN", "value": "$(tapp.index)"}]})
    memo, world = Memo(1 << 20), settled(replicas=3, template=body)
    world.change(replicas=2)
    request = Request(as_sent(world.request()), TApp, memo)
    templates = world_of(request).templates
    fields = ("by_name", "valued", "values", "claim_slots", "own")
    before = {each: dict(getattr(templates, each)) for each in fields}
    assert sorted(templates.own) == [0, 1]
    sync(request, Settings().options, NOW)
    assert {each: dict(getattr(templates, each)) for each in fields} == before


def test_unusual_pods_are_not_remembered() -> None:
    """Two of four pods are unusual: each sync parses these two again.

    Such pods are compared with their template field by field, so they are large in memory, and
    rare.
    """
    memo, world = Memo(1 << 20), settled(replicas=4)
    world.modify(1, lambda pod: {**pod, "spec": None})
    world.modify(2, lambda pod: with_meta(without_last_applied(pod), labels={"app": "web"}))
    for expected in (4, 2, 2):
        assert pods_read(memo, as_sent(world.request())) == expected


# --- size limit -----------------------------------------------------------------------------------


def test_memo_forgets_the_tapp_with_the_oldest_sync() -> None:
    body = as_sent(settled(replicas=2).request())
    alone = Memo(1 << 20)
    pods_read(alone, body)
    memo = Memo(alone.size * 5 // 2)  # enough for two TApps
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
        changed = pods_read(memo, body.replace(b"web", b"web" + app.encode()))
        assert changed == (0 if known else 2), app
        assert memo.size <= alone.size * 5 // 2


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


@pytest.mark.parametrize(("declared", "remembered"), [(GROWING, 3), ([], 0)])
def test_claims_are_remembered_if_metacontroller_updates_claims(
    declared: list[Document], remembered: int
) -> None:
    memo, request = Memo(1 << 20), settled(replicas=3, volumeClaimTemplates=[CLAIM]).request()
    request["controller"]["spec"]["childResources"] = declared
    assert_same_responses([request, request])
    first, second = (Request(as_sent(request), TApp, memo).claims for _ in range(2))
    assert len(first) == 3
    assert len([name for name in first if first[name] is second[name]]) == remembered
    claims = request["children"]["PersistentVolumeClaim.v1"]
    for change in ({"labels": {"team": "a"}}, {"annotations": {LAST_APPLIED: "{}"}}):
        key = next(iter(claims))
        claims[key] = with_meta(claims[key], **change)
        assert_same_responses([request, request])
        Request(as_sent(request), TApp, memo)
    third = Request(as_sent(request), TApp, memo).claims
    assert len([name for name in first if first[name] is third[name]]) == max(0, remembered - 1)


def test_tapp_that_is_larger_than_the_limit_is_not_remembered() -> None:
    body = as_sent(settled(replicas=2).request())
    alone = Memo(1 << 20)
    pods_read(alone, body)
    memo = Memo(alone.size - 1)
    assert [pods_read(memo, body), pods_read(memo, body), memo.size] == [2, 2, 0]


@pytest.mark.parametrize(
    ("situation", "most"),
    [(NOTHING, 7_168), (AFTER_ROLL, 8_192), (ROLL, 8_192)],
    ids=["no rollout", "after a rollout", "during a rollout"],
)
def test_memo_takes_at_most_7_kb_for_a_pod_and_8_kb_for_an_updated_pod(
    situation: str, most: int
) -> None:
    """Measures the memory of the memo for each pod, and compares it with the memo's own estimate.

    An update leaves its record and the images of the template in the annotations of the pod.
    """
    count = size(50, 1_000)
    taken, estimate = measured("held", request_in(situation, count)[1])
    assert taken / count <= most
    assert taken <= estimate <= 2.5 * taken


@pytest.mark.parametrize("crash", [False, True], ids=["running", "crashing"])
@pytest.mark.parametrize("containers", [1, 3, 10])
def test_estimated_size_of_the_memo_is_close_to_the_measured_one(
    containers: int, crash: bool
) -> None:
    """Measures the memory of pods with several containers; the estimate may be 30% too low or 70%
    too high.

    The limit applies to the estimate, so it has to be right for large and unusual pods, too.
    """
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
    taken, estimate = measured("held", as_sent(world.request()))
    assert 0.7 * taken <= estimate <= 1.7 * taken
