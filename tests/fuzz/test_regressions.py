"""Repeats errors that the fuzzer has found, each with a test."""

import json
from typing import Any

import pytest

from tests.builders import (
    READY_SINCE,
    Document,
    as_sent,
    claim_template,
    request,
    running,
    stored,
    tapp,
    template,
    with_meta,
)
from tests.fuzz.corpus import documents
from tests.fuzz.oracle import HOOKS, Service

SERVICE = Service()
RECORD = "apps.tkestack.io/in-place-update"


def settled(parent: Document) -> list[Document]:
    answer = json.loads(SERVICE.post("/sync", as_sent(request(parent))))
    return [running(stored(child, parent)) for child in answer["children"]]


@pytest.mark.parametrize("record", ["", "\\", "a\\", 'x","y', "{}", '\\"'])
def test_damaged_record_is_read_without_the_text_behind_it(record: str) -> None:
    """Damages the record of an update: the response is valid.

    The parser once read beyond the record, to the next text of the pod.
    """
    parent = tapp(replicas=4, template=template(annotations={"note": "a"}))
    pods = []
    for pod in settled(parent):
        others = {k: v for k, v in pod["metadata"]["annotations"].items() if k != RECORD}
        changed = with_meta(pod, annotations={**others, RECORD: record})
        pods.append({**changed, "spec": {"priority": 0, "schedulerName": "a", **changed["spec"]}})
    assert SERVICE.check("/sync", as_sent(request(parent, pods))) == 200


@pytest.mark.parametrize("odd", ["none", "labels"])
@pytest.mark.parametrize("place", ["containerStatuses", "phase", "conditions"])
def test_status_with_invalid_utf_8_causes_no_error(place: str, odd: str) -> None:
    parent = tapp()
    (pod,) = settled(parent)
    pod["status"]["conditions"] = []
    if odd == "labels":
        pod["metadata"]["deletionTimestamp"] = {}
    status: dict[str, Any] = pod["status"]
    pod["status"] = {
        **status,
        "reason": "@@",
        place: [{"name": "@@"}] if place != "phase" else "@@",
    }
    body = as_sent(request(parent, [pod])).replace(b"@@", b"\xff")
    assert SERVICE.check("/sync", body) == 200


@pytest.mark.parametrize("name", ['we"b', "we\nb", "wéb", "we\\b", "%b", "web-2147483647"])
def test_new_pods_of_a_tapp_with_an_unusual_name_have_their_own_names(name: str) -> None:
    """Creates the pods of TApps with unusual names: each pod has its own number in its name.

    All new pods once had the placeholder of the instance number in their name.
    """
    parent = tapp(replicas=3)
    parent["metadata"]["name"] = name
    answer = json.loads(SERVICE.post("/sync", as_sent(request(parent))))
    names = [child["metadata"]["name"] for child in answer["children"]]
    assert names == [f"{name}-{number}" for number in range(3)]


@pytest.mark.parametrize("path", HOOKS)
def test_method_options_is_refused(path: str) -> None:
    """Sends OPTIONS to each hook: it gets 405 with a JSON error; Flask once answered itself, in
    HTML.
    """
    assert SERVICE.check(path, b"", REQUEST_METHOD="OPTIONS") == 405


@pytest.mark.parametrize("place", ["record", "node"])
def test_value_with_invalid_utf_8_is_refused_in_every_pod(place: str) -> None:
    """Puts invalid UTF-8 into one of two similar pods: the request gets 400.

    A pod that resembled another pod was once not decoded, so its values were not checked.
    """
    parent = tapp(replicas=2, template=template(annotations={RECORD: "{}"}))
    pods = settled(parent)
    for pod, mark in zip(pods, ("a", "@@"), strict=True):
        if place == "record":
            pod["metadata"]["annotations"] = {RECORD: mark, "zone": "a"}
        else:
            pod["spec"]["nodeName"] = mark
    body = as_sent(request(parent, pods)).replace(b"@@", b"\xff")
    assert SERVICE.check("/sync", body) == 400


@pytest.mark.parametrize("name", [{}, [], 5, None, ...])
def test_variable_without_a_valid_name_is_left_to_the_api_server(name: Any) -> None:
    """Creates a pod with an environment variable without a valid name: the new pod has it
    unchanged.

    The search for repeated names once failed if a name could not be the key of a map.
    """
    odd = {"value": "x"} if name is ... else {"name": name, "value": "x"}
    env = [{"name": "A", "value": "1"}, odd]
    answer = SERVICE.post(
        "/sync", as_sent(request(tapp(template=template(container={"env": env}))))
    )
    (pod,) = json.loads(answer)["children"]
    assert len(pod["spec"]["containers"][0]["env"]) == 2


@pytest.mark.parametrize("digits", [399, 400, 401, 4290, 4301, 100_000])
@pytest.mark.parametrize("suffix", ["", "Gi", "m", "E", "e9"])
def test_quantity_of_thousands_of_digits_causes_no_error(digits: int, suffix: str) -> None:
    limits = {"limits": {"cpu": "9" * digits + suffix}}
    body = as_sent(request(tapp(template=template(container={"resources": limits}))))
    assert SERVICE.check("/sync", body) == 200


@pytest.mark.parametrize("digits", [20, 400, 5000])
def test_number_of_many_digits_is_refused_or_processed(digits: int) -> None:
    """Puts numbers with up to 5,000 digits into several fields: each request gets 200 or 400.

    Subtracting such a `minReadySeconds` from a float once failed.
    """
    number = b"9" * digits
    for field in ("minReadySeconds", "replicas", "serviceName", "updateStrategy", "neverMigrate"):
        parent = tapp(replicas=1)
        pods = settled(parent)
        parent["spec"][field] = {"maxUnavailable": "@@"} if field == "updateStrategy" else "@@"
        body = as_sent(request(parent, pods)).replace(b'"@@"', number)
        assert SERVICE.check("/sync", body) in (200, 400)
    template_of_numbers = template(container={"resources": {"limits": {"cpu": "@@"}}, "x": "@@"})
    body = as_sent(request(tapp(template=template_of_numbers))).replace(b'"@@"', number)
    assert SERVICE.check("/sync", body) in (200, 400)


@pytest.mark.parametrize("time", [b"\xe3", b"\\u0041", b"2026\\\\", b"\\n"])
def test_invalid_time_is_never_the_newest_time(time: bytes) -> None:
    """Puts an invalid time into a pod's conditions: no condition of the TApp has it.

    The time of a condition was once compared as a text, without a check that it is a time.
    """
    parent = tapp(replicas=2)
    pods = settled(parent)
    for condition in pods[1]["status"]["conditions"]:
        condition["lastTransitionTime"] = "@@"
    body = as_sent(request(parent, pods)).replace(b"@@", time)
    assert SERVICE.check("/sync", body) == 200
    document = json.loads(SERVICE.post("/sync", body))
    times = {item.get("lastTransitionTime") for item in document["status"]["conditions"]}
    assert times == {READY_SINCE}


def test_error_shortens_a_long_name() -> None:
    """Sends a namespace of 100,000 characters: the error is short; it once quoted the whole
    namespace.
    """
    parent = tapp(volumeClaimTemplates=[claim_template()])
    parent["metadata"]["namespace"] = "9" * 100_000
    document = request(parent)
    document["related"] = {}
    assert SERVICE.check("/sync", as_sent(document)) == 503


@pytest.mark.parametrize("section", ["initContainers", "volumes", "tolerations"])
@pytest.mark.parametrize("value", [0, 0.0, "", False, {}])
def test_empty_value_of_another_type_is_not_read_as_a_list(section: str, value: Any) -> None:
    """Puts an empty value of a wrong type in place of a list: the template is refused with a
    condition.

    One function once accepted the value as an empty list, and another one iterated over it.
    """
    parent = tapp(template=template(**{section: value}))
    for claims in ([], [claim_template()]):
        parent["spec"]["volumeClaimTemplates"] = claims
        body = as_sent(request(parent))
        assert SERVICE.check("/sync", body) == 200
        conditions = json.loads(SERVICE.post("/sync", body))["status"]["conditions"]
        (found,) = [item for item in conditions if item["type"] == "TemplateNotFound"]
        assert f"spec.{section} is not a list" in found["message"]


def _asked(status: bytes) -> bytes:
    """Returns a request of the DecoratorController for a pod of a TApp; `status` is the pod's
    status as JSON.
    """
    pod = next(item["object"] for path, item in documents(SERVICE.post) if path == "/pod-status")
    text = json.dumps({"object": {**pod, "status": "HERE"}})
    return text.encode().replace(b'"HERE"', status)


@pytest.mark.parametrize("conditions", ['["x"]', '[["a"]]', "[5]", '[{"type":5}]'])
def test_invalid_conditions_stay_unchanged(conditions: str) -> None:
    """Sends a pod whose conditions have wrong types: the response has the same conditions.

    The service had read such conditions as an empty list, which caused an internal error.
    """
    body = _asked(b'{"phase":"Running","conditions":' + conditions.encode() + b"}")
    assert SERVICE.check("/pod-status", body) == 200
    assert json.loads(SERVICE.post("/pod-status", body))["status"]["conditions"] == json.loads(
        conditions
    )


def test_status_with_invalid_utf_8_is_refused() -> None:
    """Sends a status with invalid UTF-8: it gets 400; it was once returned, so the response was no
    valid JSON.
    """
    assert SERVICE.check("/pod-status", _asked(b'{"podIP":"\xed\xa0\x80"}')) == 400


def test_duplicate_key_is_returned_once() -> None:
    assert SERVICE.check("/pod-status", _asked(b'{"podIP":"a","podIP":"b"}')) == 200
