"""The Flask application: routes, the body's way in and out, and which error is which status code.

Metacontroller deletes what an answer leaves out, so an error is never a 200: bad requests are 4xx
with the path of what is wrong, everything unexpected is a 500 without a traceback in the body.
"""

import secrets
import socket
import time
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import Any

from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from hooks.customize import customize
from hooks.explain import counts, explain, holds
from hooks.finalize import finalize
from hooks.pod_status import answer_pod_status
from hooks.service import metrics
from hooks.service.auth import Tokens
from hooks.service.events import Recorder
from hooks.service.logs import LOGGER, configure
from hooks.service.openapi import document
from hooks.service.pacing import Pacer
from hooks.service.settings import Settings
from hooks.service.turns import Answering, Turns
from hooks.sync import decide, sync
from hooks.version import VERSION
from hooks.wire.decode import WireError
from hooks.wire.memo import Memo
from hooks.wire.request import Request, customize_parent, encode
from hooks.wire.split import Pieces
from tapp.answer.children import NamespaceMissingError
from tapp.plan import Plan
from tapp.spec.model import Parent, TApp

JSON = "application/json"
LONGEST = 500
"""Characters of a text in an error's answer: it may quote the request."""
SOONEST = 0.1
"""Seconds after which we are called again at the earliest, where that has come near in the wait."""


class RefusedError(Exception):
    """A request that gets an error answer: a status code and what the caller should know."""

    def __init__(self, code: int, message: str, path: str = "") -> None:
        """`path` is where in the request's document the trouble is."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.path = path


def create_app(
    settings: Settings | None = None,
    clock: Callable[[], float] = time.time,
    resize: Callable[[Plan], None] | None = None,
    pacer: Pacer | None = None,
) -> Flask:
    """The WSGI application.

    Args:
        settings: the settings; read from the environment where None.
        clock: seconds since the epoch.
        resize: what resizes pods after a sync; by the settings where None.
        pacer: what lets syncs wait; by the settings where None.

    Raises:
        pydantic.ValidationError: a setting is wrong.
        TokenFileError: the token file is missing or empty.
        AccountError: events are to be written or pods resized, and there is no service account.
    """
    settings = settings or Settings()
    configure(settings.log_level)
    tokens = Tokens(settings.auth_token_file) if settings.auth_token_file else None
    options = settings.options
    app = Flask("tapp-hooks", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    memo, tell, resizer = Memo(settings.memo_bytes), _teller(settings), resize or _resizer(settings)
    metrics.BODY_LIMIT.set(settings.max_body_bytes)
    turns, pacer = Turns(), pacer or Pacer(settings.pace_seconds, settings.pace_pod_seconds)

    def on_sync(pieces: Pieces, now: float, waited: float) -> bytes:
        started = time.perf_counter()
        asked = Request(pieces, TApp, memo)
        answer, decided = sync(asked, options, now)
        if waited and "resyncAfterSeconds" in answer:
            answer["resyncAfterSeconds"] = max(SOONEST, answer["resyncAfterSeconds"] - waited)
        metrics.PODS_READ.inc(asked.read)
        metrics.PODS_KNOWN.inc(len(asked.pods) - asked.read)
        metrics.MEMO_BYTES.set(memo.size)
        text = encode(answer)
        tell(decided, answer["status"])
        resizer(decided)
        _log_plan(decided, time.perf_counter() - started)
        return text

    def on_finalize(body: bytes) -> bytes:
        asked = Request(body, Parent, memo)
        answer, decided = finalize(asked, options, clock())
        meta = asked.parent.metadata
        fields = {
            "hook": "finalize",
            "parent": f"{meta.namespace}/{meta.name}",
            "pods": len(asked.pods),
            "claims": len(asked.claims),
            "held": len(decided.held),
            "finalized": decided.finalized,
        }
        LOGGER.info("finalize", extra={"fields": fields})
        return encode(answer)

    def on_customize(body: bytes) -> bytes:
        return encode(customize(*customize_parent(body)))

    def on_plan(body: bytes) -> bytes:
        return encode(explain(decide(Request(body, TApp, memo), options, clock())))

    def hook(name: str, answer: Answering) -> None:
        seconds, sizes = metrics.SECONDS.labels(name), metrics.BODY_BYTES.labels(name)

        def view() -> Response:
            started = time.perf_counter()
            if tokens is not None and not tokens.accept(request.headers.get("Authorization")):
                raise RefusedError(401, "the Authorization header carries no valid bearer token")
            body = _read_body(settings.max_body_bytes)
            sizes.observe(len(body))
            text, waited = answer(body)
            seconds.observe(time.perf_counter() - started - waited)
            return Response(text, mimetype=JSON)

        app.add_url_rule(f"/{name}", name, view, methods=["POST"])

    def on_pod_status(body: bytes) -> bytes:
        return encode(answer_pod_status(body, clock()))

    for name, answer in {
        "sync": turns.paced(on_sync, pacer, memo, clock),
        "finalize": turns.at_once(on_finalize),
        "customize": turns.at_once(on_customize),
        "plan": turns.at_once(on_plan),
        "pod-status": turns.at_once(on_pod_status),
    }.items():
        hook(name, answer)

    _add_probes(app)

    @app.after_request
    def count(response: Response) -> Response:
        metrics.REQUESTS.labels(request.endpoint or "none", response.status_code).inc()
        return response

    _add_errors(app)
    return app


def _add_errors(app: Flask) -> None:
    """What is answered instead of an answer."""
    app.register_error_handler(WireError, _bad_request)
    app.register_error_handler(RefusedError, _refused)
    app.register_error_handler(NamespaceMissingError, _namespace_missing)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(RecursionError, _too_deep)
    app.register_error_handler(Exception, _bug)


def _teller(settings: Settings) -> Callable[[Plan, Mapping[str, Any]], None]:
    """What tells of each sync; where nothing is to be told, no client is even imported."""
    if not settings.events:
        return lambda _plan, _status: None
    from hooks.service.cluster import Cluster  # noqa: PLC0415 - as it says

    return Recorder(Cluster(settings.events_account), socket.gethostname()).tell


def _resizer(settings: Settings) -> Callable[[Plan], None]:
    """What resizes pods after each sync, likewise."""
    if not settings.resize:
        return lambda _plan: None
    from hooks.service.cluster import Cluster  # noqa: PLC0415 - as above
    from hooks.service.resizes import Resizer  # noqa: PLC0415

    return Resizer(Cluster(settings.events_account, component="resize")).ask


def _add_probes(app: Flask) -> None:
    """What is read with GET, without a token."""

    @app.get("/healthz")
    @app.get("/readyz", endpoint="readyz")
    def healthz() -> Response:
        return Response(b'{"status":"ok"}', mimetype=JSON)

    @app.get("/version")
    def version() -> Response:
        return Response(encode(_versions()), mimetype=JSON)

    @app.get("/openapi.json")
    def openapi() -> Response:
        return Response(encode(document()), mimetype=JSON)

    @app.get("/metrics")
    def exposition() -> Response:
        return Response(metrics.exposition(), content_type=metrics.CONTENT_TYPE)


def _read_body(limit: int) -> bytes:
    """The request's body.

    The limit is checked here: Flask's MAX_CONTENT_LENGTH would copy the body once more.
    """
    environ = request.environ
    if environ.get("CONTENT_TYPE") != JSON and request.mimetype not in (JSON, ""):
        raise RefusedError(415, f"send the request as Content-Type: {JSON}, not {request.mimetype}")
    if environ.get("HTTP_CONTENT_ENCODING", "identity") != "identity":
        raise RefusedError(415, "send the request without Content-Encoding")
    # The server's own stream is read, in one piece: Werkzeug's reads 64 KB at a time.
    length = request.content_length or 0
    if "HTTP_TRANSFER_ENCODING" in environ:
        raise RefusedError(411, "send the request with a Content-Length, not in chunks")
    if length > limit:
        text = f"the request is larger than {limit} bytes (TAPP_MAX_BODY_BYTES)"
        raise RefusedError(413, text)
    body: bytes = environ["wsgi.input"].read(length)
    if len(body) < length:
        raise RefusedError(400, "the request ended before its Content-Length")
    return body


def _versions() -> dict[str, Any]:
    libraries = ("flask", "gunicorn", "msgspec", "pydantic")
    return {"version": VERSION, "libraries": {name: metadata.version(name) for name in libraries}}


def _log_plan(decided: Any, seconds: float) -> None:
    meta = decided.world.tapp.metadata
    fields = {
        "hook": "sync",
        "parent": f"{meta.namespace}/{meta.name}",
        "generation": meta.generation,
        **counts(decided),
        "milliseconds": round(seconds * 1000, 1),
    }
    LOGGER.info("sync", extra={"fields": fields})
    for action, number in fields["actions"].items():
        if action != "Keep":
            metrics.ACTIONS.labels(action).inc(number)
    for outcome, number in holds(decided).items():
        metrics.HOLDS.labels(outcome).inc(number)


def _error(code: int, message: str, **more: str) -> Response:
    parts = {"error": message, **more}
    body = {key: value[:LONGEST] for key, value in parts.items() if value or key == "error"}
    return Response(encode(body), status=code, mimetype=JSON)


def _bad_request(error: WireError) -> Response:
    LOGGER.warning("bad request", extra={"fields": {"path": error.path, "error": error.message}})
    return _error(400, error.message, path=error.path)


def _too_deep(_: RecursionError) -> Response:
    """What can be read may still be too deep for the rules that go through it."""
    return _bad_request(WireError("", "is nested too deeply"))


def _refused(error: RefusedError) -> Response:
    response = _error(error.code, error.message, path=error.path)
    if error.code == 401:  # noqa: PLR2004 - an HTTP status code
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _namespace_missing(error: NamespaceMissingError) -> Response:
    LOGGER.warning("no answer", extra={"fields": {"error": str(error)}})
    return _error(503, str(error))


def _http_error(error: HTTPException) -> Response:
    response = _error(error.code or 500, error.description or error.name)
    if error.code == 405:  # noqa: PLR2004 - an HTTP status code
        allowed = getattr(error, "valid_methods", None) or []
        response.headers["Allow"] = ", ".join(sorted(allowed))
    return response


def _bug(error: Exception) -> Response:
    request_id = secrets.token_hex(8)
    LOGGER.error("internal error", exc_info=error, extra={"fields": {"requestId": request_id}})
    return _error(500, "internal error; the log has more under this id", requestId=request_id)
