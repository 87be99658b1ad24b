"""The Flask application: its routes, and the status code of each error.

Metacontroller deletes every child that a response leaves out, so an error must never be a 200. A
bad request gets a 4xx with the path of the error in the request. Any other error gets a 500, and
its traceback is only in the log.
"""

import secrets
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from typing import Any

import msgspec
from flask import Flask, Response, request
from msgspec import structs
from werkzeug.exceptions import HTTPException

from hooks.customize import customize
from hooks.explain import counts, explain, holds
from hooks.finalize import finalize
from hooks.pod_status import answer_pod_status
from hooks.service import metrics
from hooks.service.auth import Tokens
from hooks.service.bodies import JSON, Bodies
from hooks.service.errors import RefusedError, error_body
from hooks.service.events import Recorder
from hooks.service.logs import LOGGER, configure
from hooks.service.pacing import Pacer, paced_request
from hooks.service.pool import in_pool
from hooks.service.settings import Settings
from hooks.service.turns import Turns
from hooks.sync import Synced, decide, sync
from hooks.version import VERSION
from hooks.wire.decode import WireError
from hooks.wire.memo import UNNAMED, AppName, Memo
from hooks.wire.request import Request, customize_parent, encode
from hooks.wire.split import Pieces, split
from tapp.answer.children import NamespaceMissingError
from tapp.answer.conditions import Conditions
from tapp.declared.model import Parent, TApp
from tapp.plan import Plan

_HEADERS = {401: ("WWW-Authenticate", "Bearer"), 503: ("Retry-After", "1")}
SOONEST = 0.1
"""Least seconds of `resyncAfterSeconds`, if most of the time has passed while the sync waited."""

Answering = Callable[[bytes], tuple[bytes, float]]
"""Function from the body of a request to the body of its answer, and the seconds of its delay."""


def create_app(
    settings: Settings | None = None,
    clock: Callable[[], float] = time.time,
    resize: Callable[[Plan], None] | None = None,
    pacer: Pacer | None = None,
) -> Flask:
    """Returns the WSGI application of the service, with all its routes.

    Args:
        settings: the settings; None reads them from the environment.
        clock: returns the seconds since the epoch.
        resize: resizes pods after each sync; None uses the settings.
        pacer: delays syncs of large TApps; None creates one from the settings.

    Raises:
        pydantic.ValidationError: a setting is invalid.
        TokenFileError: the token file is missing or empty.
        AccountError: Events or resizes are enabled, and there is no service account.
    """
    settings = settings or Settings()
    configure(settings.log_level)
    tokens = Tokens(settings.auth_token_file) if settings.auth_token_file else None
    app = Flask("tapp-hooks", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    metrics.BODY_LIMIT.set(settings.max_body_bytes)
    pacer = pacer or Pacer(settings.pace_seconds, settings.pace_pod_seconds)
    bodies = Bodies(settings.max_body_bytes, settings.body_seconds)
    hooks = _Hooks(settings, clock, pacer, _recorder(settings), resize or _resizer(settings))

    def hook(name: str, answer: Answering) -> None:
        seconds, sizes = metrics.SECONDS.labels(name), metrics.BODY_BYTES.labels(name)

        def view() -> Response:
            started = time.perf_counter()
            if tokens is not None and not tokens.accept(request.headers.get("Authorization")):
                raise RefusedError(401, "the Authorization header carries no valid bearer token")
            with bodies.received(request) as body:
                sizes.observe(len(body))
                text, waited = answer(body)
            seconds.observe(time.perf_counter() - started - waited)
            return Response(text, mimetype=JSON)

        app.add_url_rule(f"/{name}", name, view, methods=["POST"])

    for name, answer in hooks.all.items():
        hook(name, answer)

    _add_probes(app)

    @app.after_request
    def count(response: Response) -> Response:
        metrics.REQUESTS.labels(request.endpoint or "none", response.status_code).inc()
        bodies.bound(request, response)
        return response

    _add_errors(app)
    return app


class _About(msgspec.Struct, frozen=True):
    """An object in a request, of which only namespace and name are read."""

    metadata: AppName = UNNAMED


class _Asked(msgspec.Struct, frozen=True):
    """The parts of a request that name its object: the TApp, or the pod of `/pod-status`."""

    parent: _About = _About()
    object: _About = _About()


_decode_asked = msgspec.json.Decoder(_Asked).decode


def namespace_of(body: bytes) -> str:
    """Returns the namespace of the parent or object of a request.

    Returns an empty string if the request cannot be read; a later step refuses it.
    """
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        asked = _decode_asked(body)
        return asked.parent.metadata.namespace or asked.object.metadata.namespace
    return ""


class _Hooks:
    """The hooks of one process: functions from a request's body to the response's body.

    `all` maps the name of a hook, which is also its route, to its function.
    """

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float],
        pacer: Pacer,
        record: Callable[[Plan, Conditions], None],
        resizer: Callable[[Plan], None],
    ) -> None:
        """Prepares the hooks, with an empty cache.

        Args:
            settings: the settings of the service.
            clock: returns the seconds since the epoch.
            pacer: delays syncs of large TApps.
            record: writes the Events of a sync; called after each sync.
            resizer: sends the resizes of a sync; called after each sync.
        """
        self._options, self._clock, self._pacer = settings.options, clock, pacer
        self._record, self._resizer = record, resizer
        self._memo, self._turns = Memo(settings.memo_bytes), Turns()
        self.all: dict[str, Answering] = {
            "sync": self._sync,
            "finalize": self._at_once(self._finalize),
            "customize": self._at_once(lambda body, _: encode(customize(*customize_parent(body)))),
            "plan": self._at_once(self._plan),
            "pod-status": self._at_once(lambda body, now: encode(answer_pod_status(body, now))),
        }

    def _at_once(self, answer: Callable[[bytes, float], bytes]) -> Answering:
        """Returns the function of a hook whose requests are not delayed by the pacer.

        `answer` is called with the body of a request and the time in seconds since the epoch.
        """

        def answering(body: bytes) -> tuple[bytes, float]:
            with self._turns.turn(in_pool(namespace_of, body)):
                return in_pool(answer, body, self._clock()), 0.0

        return answering

    def _sync(self, body: bytes) -> tuple[bytes, float]:
        """Handles a sync after the delay of the pacer.

        Returns the body of the response, and the seconds of the delay. The request takes a place in
        `_turns` only after the delay, so it blocks no other request while it waits. The decision
        uses the time at which the request arrived, because the observed objects are from that time.
        """
        now, pieces = self._clock(), in_pool(split, body, self._memo)
        paced = paced_request(pieces, len(body))
        waited = self._pacer.pace(paced)
        if waited:
            metrics.PACED.observe(waited)
        with self._turns.turn(pieces.cached.app.namespace):
            text, synced = in_pool(self._decide, pieces, now, waited)
            self._record(synced.plan, synced.conditions)
            self._resizer(synced.plan)
        self._pacer.answered(paced)
        return text, waited

    def _decide(self, pieces: Pieces, now: float, waited: float) -> tuple[bytes, Synced]:
        """Decides a sync, and returns the body of the response and the decisions.

        Args:
            pieces: the parts of the request.
            now: when the request arrived, in seconds since the epoch.
            waited: the seconds for which the pacer has delayed the request; the next sync comes
                earlier by them.
        """
        started = time.perf_counter()
        known = self._memo.of(pieces.parent)  # other requests may have added to it meanwhile
        asked = Request(structs.replace(pieces, cached=known), TApp, self._memo)
        synced = sync(asked, self._options, now)
        answer = synced.answer
        if waited and "resyncAfterSeconds" in answer:
            answer["resyncAfterSeconds"] = max(SOONEST, answer["resyncAfterSeconds"] - waited)
        metrics.PODS_READ.inc(asked.read)
        metrics.PODS_KNOWN.inc(len(asked.pods) - asked.read)
        metrics.MEMO_BYTES.set(self._memo.size)
        text = encode(answer)
        _log_plan(synced.plan, time.perf_counter() - started)
        return text, synced

    def _finalize(self, body: bytes, now: float) -> bytes:
        """Handles a finalize call; `now` is the time in seconds since the epoch."""
        asked = Request(body, Parent, self._memo)
        answer, made = finalize(asked, self._options, now)
        meta = asked.parent.metadata
        fields = {
            "hook": "finalize",
            "parent": f"{meta.namespace}/{meta.name}",
            "pods": len(asked.pods),
            "claims": len(asked.claims),
            "held": len(made.held),
            "finalized": made.finalized,
        }
        LOGGER.info("finalize call answered", extra={"fields": fields})
        return encode(answer)

    def _plan(self, body: bytes, now: float) -> bytes:
        """Handles a request of `/plan`: explains the decisions of a sync and changes nothing."""
        return encode(explain(decide(Request(body, TApp, self._memo), self._options, now)))


def _add_errors(app: Flask) -> None:
    """Registers the functions that turn exceptions into JSON error responses."""
    app.register_error_handler(WireError, _bad_request)
    app.register_error_handler(RefusedError, _refused)
    app.register_error_handler(NamespaceMissingError, _namespace_missing)
    app.register_error_handler(HTTPException, _http_error)
    app.register_error_handler(RecursionError, _too_deep)
    app.register_error_handler(Exception, _bug)


def _recorder(settings: Settings) -> Callable[[Plan, Conditions], None]:
    """Returns the function that writes the Events of a sync.

    It does nothing unless the operator has enabled Events (TAPP_EVENTS).
    """
    if not settings.events:
        return lambda _plan, _conditions: None
    # Without the component nothing of its client is imported.
    from hooks.service.cluster import Cluster  # noqa: PLC0415

    return Recorder(Cluster(settings.events_account).create, socket.gethostname()).queue


def _resizer(settings: Settings) -> Callable[[Plan], None]:
    """Returns the function that sends the resizes of a sync to the API server.

    It does nothing unless the operator has enabled resizes (TAPP_RESIZE).
    """
    if not settings.resize:
        return lambda _plan: None
    # Without the component nothing of its client is imported.
    from hooks.service.cluster import Cluster  # noqa: PLC0415
    from hooks.service.resizes import Resizer  # noqa: PLC0415

    return Resizer(Cluster(settings.events_account, component="resize").resize).queue


def _add_probes(app: Flask) -> None:
    """Adds the routes for GET requests, such as /healthz, which need no token."""

    @app.get("/healthz")
    @app.get("/readyz", endpoint="readyz")
    def healthz() -> Response:
        return Response(b'{"status":"ok"}', mimetype=JSON)

    @app.get("/version")
    def version() -> Response:
        libraries = ("flask", "gunicorn", "msgspec", "pydantic")
        versions = {name: metadata.version(name) for name in libraries}
        return Response(encode({"version": VERSION, "libraries": versions}), mimetype=JSON)

    @app.get("/metrics")
    def exposition() -> Response:
        return Response(metrics.exposition(), content_type=metrics.CONTENT_TYPE)


def _log_plan(plan: Plan, seconds: float) -> None:
    """Writes a log line about a sync, and counts its actions and holds in the metrics.

    `seconds` is how long the decision took.
    """
    meta = plan.world.tapp.metadata
    fields: dict[str, Any] = {
        "hook": "sync",
        "parent": f"{meta.namespace}/{meta.name}",
        "generation": meta.generation,
        **counts(plan),
        "milliseconds": round(seconds * 1000, 1),
    }
    LOGGER.info("sync answered", extra={"fields": fields})
    for action, number in fields["actions"].items():
        if action != "Keep":
            metrics.ACTIONS.labels(action).inc(number)
    for outcome, number in holds(plan).items():
        metrics.HOLDS.labels(outcome).inc(number)


def _error(code: int, message: str, **more: str) -> Response:
    """Returns an error response with a JSON body.

    Args:
        code: the HTTP status code.
        message: the message for the client.
        more: further entries of the body.
    """
    return Response(error_body(message, **more), status=code, mimetype=JSON)


def _bad_request(error: WireError) -> Response:
    """Returns the response with code 400 for a request that cannot be read."""
    message = f"{error.path or 'the request'}: {error.message}"
    fields = {"path": error.path, "error": message}
    LOGGER.warning("request refused with 400: it cannot be read", extra={"fields": fields})
    return _error(400, message, path=error.path)


def _too_deep(_: RecursionError) -> Response:
    """Returns the response with code 400 for a request that is nested too deeply."""
    # A request that can be decoded may still be too deep for rules that recurse into it.
    return _bad_request(WireError("", "is nested too deeply"))


def _refused(error: RefusedError) -> Response:
    """Returns the response for a request that the service refuses, with the code of the error."""
    response = _error(error.code, error.message, path=error.path)
    if error.code in _HEADERS:
        response.headers.add(*_HEADERS[error.code])
    return response


def _namespace_missing(error: NamespaceMissingError) -> Response:
    """Returns the response with code 503 for a request without the Namespace that claims need."""
    LOGGER.warning("request refused with 503", extra={"fields": {"error": str(error)}})
    return _error(503, str(error))


def _http_error(error: HTTPException) -> Response:
    """Returns the response for an error that Flask detects, such as an unknown route."""
    response = _error(error.code or 500, error.description or error.name)
    if error.code == 405:  # noqa: PLR2004 - an HTTP status code
        allowed = getattr(error, "valid_methods", None) or []
        response.headers["Allow"] = ", ".join(sorted(allowed))
    return response


def _bug(error: Exception) -> Response:
    """Returns the response with code 500 for an unexpected exception, whose traceback is logged."""
    request_id = secrets.token_hex(8)
    fields = {"requestId": request_id}
    LOGGER.error(
        "request failed with 500: internal error", exc_info=error, extra={"fields": fields}
    )
    message = "internal error of the TApp service: its log has the cause under this requestId"
    return _error(500, message, requestId=request_id)
