"""Tests HTTP of the hooks: methods, content types, limits, tokens and probes
(docs/endpoints.md).
"""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from hooks.app import create_app
from hooks.service.auth import TokenFileError
from hooks.service.logs import JsonFormatter
from hooks.service.settings import Settings
from tests.builders import NOW, as_sent, claim_template, request, tapp
from tests.contract.calls import CLIENT, HOOKS, WITH_CHILDREN, check_error, client, good, post
from tests.unit.world import settled


@pytest.mark.parametrize("path", HOOKS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_hooks_accept_only_post(path: str, method: str) -> None:
    response = CLIENT.open(path, method=method)
    check_error(response, 405)
    assert "POST" in response.headers["Allow"]


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/version", "/metrics"])
def test_probes_accept_only_get(path: str) -> None:
    response = post(path, {})
    check_error(response, 405)
    assert "GET" in response.headers["Allow"]
    assert CLIENT.get(path).status_code == 200


@pytest.mark.parametrize("path", ["/", "/sync/", "/SYNC", "/nothing", "/sync/x", "/%00", "/..%2f"])
def test_other_paths_are_not_found(path: str) -> None:
    check_error(post(path, {}), 404)


@pytest.mark.parametrize("path", HOOKS)
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "a"]
)
def test_other_content_types_than_json_are_refused(path: str, content_type: str) -> None:
    check_error(post(path, good(), content_type), 415)


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", None, "APPLICATION/JSON"],
)
def test_json_is_accepted_with_every_spelling_of_its_content_type(content_type: str | None) -> None:
    assert post("/sync", good(), content_type).status_code == 200


IN_FLIGHT = "tapp_hook_requests_in_flight"


def test_compressed_body_is_refused() -> None:
    response = CLIENT.post(
        "/sync",
        data=b"\x1f\x8b",
        content_type="application/json",
        headers={"Content-Encoding": "gzip"},
    )
    check_error(response, 415)


@pytest.mark.parametrize("path", HOOKS)
@pytest.mark.parametrize("more", [0, 1], ids=["at the limit", "one byte more"])
def test_body_above_the_limit_is_refused(path: str, more: int) -> None:
    small = client(max_body_bytes=20_000)
    body = json.dumps(good()).encode()
    body += b" " * (20_000 - len(body) + more)
    response = small.post(path, data=body, content_type="application/json")
    if more:
        check_error(response, 413)
    else:
        assert response.status_code == 200


# --- bearer tokens --------------------------------------------------------------------------------


def call(hooks: Any, header: str | None, path: str = "/sync") -> Any:
    """Sends a valid request with this Authorization header; None sends no header."""
    headers = {} if header is None else {"Authorization": header}
    body = json.dumps(good()).encode()
    return hooks.post(path, data=body, content_type="application/json", headers=headers)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """Returns a file with one token."""
    path = tmp_path / "token"
    path.write_text("s3cret-old\n")
    return path


def test_right_token_is_accepted(token_file: Path) -> None:
    hooks = client(auth_token_file=token_file)
    assert call(hooks, "Bearer s3cret-old").status_code == 200
    assert call(hooks, "bearer s3cret-old").status_code == 200


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        "Bearer s3cret",
        "Bearer s3cret-old2",
        "Basic s3cret-old",
        "s3cret-old",
        "Bearer s\u00e9cret",
    ],
)
@pytest.mark.parametrize("path", HOOKS)
def test_other_authorization_headers_are_refused(
    token_file: Path, header: str | None, path: str
) -> None:
    response = call(client(auth_token_file=token_file), header, path)
    check_error(response, 401)
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert b"s3cret" not in response.data


def test_probes_need_no_token(token_file: Path) -> None:
    hooks = client(auth_token_file=token_file)
    assert hooks.get("/healthz").status_code == hooks.get("/readyz").status_code == 200


@pytest.mark.parametrize("coding", ["latin-1", "utf-8"])
def test_token_with_other_characters_than_ascii_is_accepted_in_both_encodings(
    token_file: Path, coding: str
) -> None:
    """A token with the letter é is accepted if the client sends it as UTF-8 or as Latin-1.

    The token file is UTF-8, and a WSGI server shows the bytes of a header as Latin-1.
    """
    token_file.write_bytes("g\u00e9heim".encode())
    hooks = client(auth_token_file=token_file)
    shown = "Bearer g\u00e9heim".encode(coding).decode("latin-1")
    assert call(hooks, shown).status_code == 200
    check_error(call(hooks, shown + "\u00e9"), 401)


def test_both_tokens_are_accepted_only_during_a_rotation(token_file: Path) -> None:
    hooks = client(auth_token_file=token_file)
    token_file.write_text("s3cret-old\ns3cret-new\n\n")
    assert call(hooks, "Bearer s3cret-old").status_code == 200
    assert call(hooks, "Bearer s3cret-new").status_code == 200
    token_file.write_text("s3cret-new")
    assert call(hooks, "Bearer s3cret-new").status_code == 200
    check_error(call(hooks, "Bearer s3cret-old"), 401)


def test_tokens_stay_valid_if_their_file_is_emptied_or_lost(token_file: Path) -> None:
    hooks = client(auth_token_file=token_file)
    token_file.write_text("\n")
    assert call(hooks, "Bearer s3cret-old").status_code == 200
    check_error(call(hooks, "Bearer "), 401)
    token_file.unlink()
    assert call(hooks, "Bearer s3cret-old").status_code == 200
    check_error(call(hooks, None), 401)


@pytest.mark.parametrize("content", [None, "", " \n\t\n"], ids=["no file", "empty", "blank"])
def test_application_does_not_start_without_a_token_in_its_file(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "token"
    if content is not None:
        path.write_text(content)
    with pytest.raises(TokenFileError, match="token"):
        create_app(Settings(auth_token_file=path))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TAPP_LOG_LEVEL", "LOUD"),
        ("TAPP_MAX_BODY_BYTES", "many"),
        ("TAPP_TOLERATION_SECONDS", "-1"),
        ("TAPP_DELETE_POD_AFTER_APP_FINISH", "perhaps"),
    ],
)
def test_invalid_setting_is_an_error_at_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match="validation error"):
        create_app()


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAPP_DELETE_POD_AFTER_APP_FINISH", "false")
    monkeypatch.setenv("TAPP_TOLERATION_SECONDS", "60")
    options = Settings().options
    assert not options.delete_pod_after_app_finish
    assert options.toleration_seconds == 60


# --- hook protocol --------------------------------------------------------------------------------


@pytest.mark.parametrize("hook", WITH_CHILDREN)
def test_both_protocol_versions_get_the_same_response(hook: str) -> None:
    world = settled(replicas=3, volumeClaimTemplates=[claim_template()])
    world.change(replicas=2, statuses={"0": "Killed"})
    answers = [post(hook, world.request(version=version)).data for version in (1, 2)]
    assert answers[0] == answers[1]
    assert answers[0].startswith(b"{")


def test_unknown_fields_of_a_request_are_ignored() -> None:
    document = {**good(), "future": {"a": 1}}
    assert post("/sync", document).data == post("/sync", good()).data


def test_kinds_without_children_may_be_missing_or_unknown() -> None:
    document = request(tapp())
    document["children"] = {"Pod.v1": {}, "Service.v1": {}}
    assert post("/sync", document).status_code == 200


def test_response_has_only_keys_that_metacontroller_knows() -> None:
    answer = json.loads(post("/sync", good()).data)
    assert sorted(answer) == ["children", "status"]
    answer = json.loads(post("/finalize", settled().request(finalizing=True)).data)
    assert sorted(answer) == ["children", "finalized", "resyncAfterSeconds", "status"]


def test_new_application_gives_the_same_response() -> None:
    answers = {client().post("/sync", json=good()).data for _ in range(2)}
    assert answers == {post("/sync", good()).data}


# --- plans, probes, metrics and logs --------------------------------------------------------------


def test_plan_has_every_instance_and_the_budget() -> None:
    plan = json.loads(post("/plan", request(tapp(replicas=2))).data)
    assert [item["action"] for item in plan["instances"]] == ["Create", "Create"]
    assert plan["budget"]["shouldRun"] == 2


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_respond_with_json(path: str) -> None:
    response = CLIENT.get(path)
    assert response.status_code == 200
    assert response.mimetype == "application/json"


def test_version_endpoint_returns_the_version() -> None:
    assert json.loads(CLIENT.get("/version").data)["version"]


def test_metrics_count_requests_by_hook_and_code() -> None:
    post("/sync", good())
    post("/sync", b"")
    text = CLIENT.get("/metrics").data.decode()
    assert 'tapp_hook_requests_total{code="200",hook="sync"}' in text
    assert 'tapp_hook_requests_total{code="400",hook="sync"}' in text


def test_metric_counts_a_request_while_it_is_decided() -> None:
    """The metric of requests in flight is one higher during a decision, and as before after it.

    The service can be scaled by this metric.
    """

    def in_flight() -> float:
        text = CLIENT.get("/metrics").data.decode()
        (line,) = [line for line in text.splitlines() if line.startswith(f"{IN_FLIGHT} ")]
        return float(line.split()[1])

    seen: list[float] = []

    def clock() -> float:
        seen.append(in_flight())
        return NOW

    app = create_app(Settings(log_level="ERROR"), clock=clock)
    body = as_sent(settled().request(finalizing=True))
    before = in_flight()
    response = app.test_client().post("/finalize", data=body, content_type="application/json")
    assert response.status_code == 200
    assert seen == [before + 1]
    assert in_flight() == before


LONG = "x" * 1_000_000


def logged(hooks: Any, *requests: tuple[str, Any]) -> list[str]:
    """Sends documents to endpoints, and returns the log lines of these requests."""
    logger, lines = logging.getLogger("tapp.hooks"), list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(JsonFormatter().format(record))  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        for path, document in requests:
            hooks.post(path, json=document)
    finally:
        logger.removeHandler(handler)
        logger.setLevel("ERROR")
    return lines


def _named(name: str) -> Any:
    parent = tapp()
    return request({**parent, "metadata": {**parent["metadata"], "name": name}})


@pytest.mark.parametrize(
    ("path", "document"),
    [
        pytest.param("/sync", {**good(), "children": {LONG: {"a": {}}}}, id="kind"),
        pytest.param("/sync", request(tapp(templates={LONG: 1})), id="key"),
        pytest.param("/sync", _named(LONG), id="name"),
        pytest.param("/finalize", {**_named(LONG), "finalizing": True}, id="name in finalize"),
    ],
)
def test_log_lines_are_short_although_the_request_is_long(path: str, document: Any) -> None:
    lines = logged(client(log_level="INFO"), (path, document))
    assert lines
    assert max(map(len, lines)) < 10_000
    assert all(json.loads(line)["message"] for line in lines)


def test_log_line_of_a_traceback_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises an exception whose text has a million characters; the log line has less than 50,000.

    A traceback may end with a text of the request.
    """

    def bug(*_arguments: Any) -> None:
        raise ValueError(LONG)

    monkeypatch.setattr("hooks.app.sync", bug)
    (line,) = logged(client(), ("/sync", request(tapp())))
    assert len(line) < 50_000


def test_sync_is_logged_in_one_line_with_its_decisions() -> None:
    logger, lines = logging.getLogger("tapp.hooks"), []
    hooks = client(log_level="INFO")
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(JsonFormatter().format(record))  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        hooks.post("/sync", json=request(tapp(replicas=2)))
    finally:
        logger.removeHandler(handler)
        logger.setLevel("ERROR")
    (line,) = lines
    assert "\n" not in line
    fields = json.loads(line)
    assert fields["parent"] == "shop/web"
    assert fields["generation"] == 1
    assert fields["actions"] == {"Create": 2}
    assert fields["reasons"] == {"NoPod": 2}
    assert fields["milliseconds"] >= 0
