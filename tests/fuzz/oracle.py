"""Checks the response to any request (P7), and the use that Metacontroller makes of it (P1, P6).

`Service.check` is the entry point. No check needs a valid request.
"""

import io
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, TypeVar

import msgspec

from hooks.app import create_app
from hooks.service.settings import Settings
from hooks.wire.decode import as_deep_as_readable
from simulator.metacontroller.hook_client import WsgiHook
from tapp.kube.depth import is_too_deep
from tapp.words.vocabulary import MAX_REPLICAS
from tests.builders import NOW, Document

T = TypeVar("T")


class _Meta(msgspec.Struct):
    name: str


class _Named(msgspec.Struct):
    metadata: _Meta


class _Odd(msgspec.Struct):
    metadata: dict[str, msgspec.Raw]


class _Children(msgspec.Struct):
    pods: dict[str, msgspec.Raw] | None = msgspec.field(name="Pod.v1", default=None)
    claims: dict[str, msgspec.Raw] | None = msgspec.field(
        name="PersistentVolumeClaim.v1", default=None
    )
    revisions: dict[str, msgspec.Raw] | None = msgspec.field(
        name="ControllerRevision.apps/v1", default=None
    )
    services: dict[str, msgspec.Raw] | None = msgspec.field(name="Service.v1", default=None)


class Request(msgspec.Struct):
    """The parts of a request that the checks read; all other parts may be broken."""

    parent: dict[str, msgspec.Raw]
    children: msgspec.Raw

    def part(self, key: str) -> Any:
        """Returns `metadata` or `spec` of the parent; None if that part is too broken to be read.

        The status may be broken at any time, the spec in the deletion of a TApp.
        """
        try:
            return as_deep_as_readable(msgspec.json.decode, self.parent.get(key, b"null"))
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


class _Pod(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw(b"null")


class _Decorated(msgspec.Struct):
    """The parts of a DecoratorController's request that the checks read."""

    object: msgspec.Raw


def _reader(kind: type[T]) -> Callable[[bytes | msgspec.Raw], T]:
    """Returns a function that parses JSON as the type `kind`, even if parts are nested too
    deeply.
    """
    return partial(as_deep_as_readable, msgspec.json.Decoder(kind).decode)


read_decorated = _reader(_Decorated)
read_pod = _reader(_Pod)
read = _reader(Request)
read_children = _reader(_Children)
read_named = _reader(_Named)
read_odd = _reader(_Odd)


def name_of(child: msgspec.Raw) -> str:
    """Returns the name of a child; if a key is repeated, its last value counts."""
    try:
        return read_named(child).metadata.name
    except msgspec.ValidationError:
        return msgspec.json.decode(read_odd(child).metadata["name"], type=str)


API_VERSIONS = {
    "Pod": "v1",
    "PersistentVolumeClaim": "v1",
    "ControllerRevision": "apps/v1",
    "Service": "v1",
    "PodDisruptionBudget": "policy/v1",
}
HOOKS = ("/sync", "/finalize", "/customize", "/plan", "/pod-status")
GOOD, BAD = {200}, {400, 401, 404, 405, 411, 413, 415}
SECONDS = 100.0
"""Seconds after which a missing response counts as a hang."""
SHORT = 1 << 20
"""The size of a response, in bytes, below which its size is not checked."""
LONGEST_ERROR = 600
ERROR_KEYS = {"error", "path", "requestId"}
ANSWER_KEYS = {
    "/sync": {"status", "children", "resyncAfterSeconds"},
    "/finalize": {"status", "children", "finalized", "resyncAfterSeconds"},
    "/customize": {"relatedResources"},
    "/plan": {
        *("instances", "budget", "claims", "revisions", "refused", "services"),
        "disruptionBudgets",
    },
    "/pod-status": {"status", "resyncAfterSeconds"},
}
_ERROR_TYPES = re.compile(rb"Traceback|\.py\b|[a-z]Error\b|0x[0-9a-f]{6}")


class FindingError(AssertionError):
    """Reports that the service did something that it must never do."""


class HangError(BaseException):
    """A response takes too long; a BaseException, so that no `except Exception` catches it."""


def hold(claim: Any, what: object) -> None:
    """Raises FindingError with the text `what` unless `claim` is true."""
    if not claim:
        raise FindingError(str(what)[:2000])


def _hook(**settings: Any) -> WsgiHook:
    made = create_app(Settings(log_level="ERROR", **settings), clock=lambda: NOW)
    return WsgiHook(made.wsgi_app)


class Service:
    """Runs the WSGI application in this process, without a server or a test client.

    Requests can also be sent to a second application without a memo, which caches nothing.
    """

    def __init__(self, **settings: Any) -> None:
        """Builds a new application with these settings and a clock that stands still."""
        self._hook = _hook(**settings)
        self._forgetful = _hook(**settings, memo_bytes=0)

    def call(
        self, path: str, body: bytes, *, remembering: bool = True, **more: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """Sends a request and returns the status code, the headers (with lower-case names) and the
        body.

        If `remembering` is False, the application without a memo gets the request. `more` are WSGI
        variables.
        """
        hook = self._hook if remembering else self._forgetful
        given = {"PATH_INFO": path, "wsgi.errors": io.StringIO(), **more}
        answer = hook.post("http://localhost", body, 0, **given)
        return answer.status, answer.headers, answer.body

    def post(self, path: str, body: bytes) -> bytes:
        """Sends a request and returns the body of the response, which must have the status code
        200.
        """
        code, _, answer = self.call(path, body)
        hold(code == 200, answer)
        return answer

    def check(self, path: str, body: bytes, **more: Any) -> int:
        """Sends a request and checks everything that must be true of its response.

        Args:
            path: the endpoint.
            body: the request.
            more: WSGI variables.

        Returns:
            The status code.
        """
        code, headers, answer = self.call(path, body, **more)
        _judge_size(body, answer)
        hold(len(answer) == int(headers.get("content-length", len(answer))), "wrong length")
        if code != 200:
            check_error(code, headers, answer)
            return code
        if path not in HOOKS:
            return code
        hold(headers["content-type"] == "application/json", headers)
        document = parsed(answer)
        hold(document.keys() <= ANSWER_KEYS[path], document.keys())
        if path == "/pod-status":
            check_status(body, document)
        if path in ("/sync", "/finalize"):
            request = read(body)
            omitted = check_children(request, document)
            check_answer(path, document)
            self._check_omitted(path, request, body, omitted)
        if path != "/customize":
            other = self.call(path, body, remembering=False, **more)
            hold(other[0] == code, f"without a memo: {other[0]} {other[2][:500]!r}")
            hold(other[2] == answer, "without a memo it is answered differently")
        return code

    def _check_omitted(self, path: str, request: Request, body: bytes, omitted: set[Any]) -> None:
        """Checks that the decisions name every child that the response omits, because
        Metacontroller deletes it.

        `omitted` are pairs of a kind and a name.
        """
        if path == "/finalize":
            spec = request.part("spec")
            key = "persistentVolumeClaimRetentionPolicy"
            policy = spec.get(key) if isinstance(spec, dict) else None
            delete = isinstance(policy, dict) and policy.get("whenDeleted") == "Delete"
            claims = [name for kind, name in omitted if kind == "PersistentVolumeClaim"]
            hold(delete or not claims, f"claims are deleted: {claims}")
            going = request.part("metadata").get("deletionTimestamp") is not None
            hold(going or not omitted, f"left out of what is handed over: {omitted}")
            return
        code, _, answer = self.call("/plan", body)
        hold(code == 200, f"/plan answers {code} where /sync answers 200: {answer[:500]!r}")
        plan = parsed(answer)
        name = request.part("metadata")["name"]
        gone = {
            ("Pod", f"{name}-{item['id']}")
            for item in plan["instances"]
            if item["action"] in ("Delete", "Recreate") and item["reason"] and item["message"]
        }
        gone |= {("PersistentVolumeClaim", claim) for claim in plan["claims"]["delete"]}
        gone |= {("ControllerRevision", name) for name in plan["revisions"]["delete"]}
        gone |= {("Service", name) for name in plan.get("services", {}).get("delete", ())}
        budgets = plan.get("disruptionBudgets", {}).get("delete", ())
        gone |= {("PodDisruptionBudget", name) for name in budgets}
        hold(omitted == gone, f"left out: {omitted - gone}; kept though to go: {gone - omitted}")


def _judge_size(body: bytes, answer: bytes) -> None:
    """Checks that the size of a response is proportional to its request and the requested pods."""
    if len(answer) >= SHORT:
        most = SHORT + 8 * len(body) + 4096 * asked_for(body)
        hold(len(answer) < most, f"{len(answer)} bytes are answered, {most} at most")


def asked_for(body: bytes) -> int:
    """Returns the number of pods that a request asks for or has, at least 1."""
    try:
        request = read(body)
        children = read_children(request.children)
        spec = request.part("spec")
    except msgspec.DecodeError:
        return 1
    replicas = spec.get("replicas") if isinstance(spec, dict) else None
    wanted = replicas if type(replicas) is int and 0 < replicas <= MAX_REPLICAS else 1
    return max(wanted, len(children.pods or {}))


def check_error(code: int, headers: dict[str, str], answer: bytes) -> None:
    """Checks that an error is a short JSON document without internals of the service."""
    body = parsed(answer)
    unowned = code == 503 and "Namespace" in body.get("error", "")
    hold(code in BAD or unowned, f"{code}: {answer[:500]!r}")
    hold(headers["content-type"] == "application/json", headers)
    hold(body.get("error") and body.keys() <= ERROR_KEYS, body)
    for value in body.values():
        hold(isinstance(value, str) and len(value) <= LONGEST_ERROR, f"too long: {value!r:.100}")
    found = _ERROR_TYPES.search(answer)
    hold(not found or found[0] == b".py", f"{found} in {answer!r}")


def check_answer(path: str, answer: Document) -> None:
    """Checks that Metacontroller's strict decoder would accept the response of a sync or finalize
    call.
    """
    hold(isinstance(answer.get("status"), dict), "status is no object")
    again = answer.get("resyncAfterSeconds", 1)
    hold(isinstance(again, int | float) and again > 0, again)
    if path == "/finalize":
        hold(isinstance(answer.get("finalized"), bool), "finalized is no boolean")


def check_status(body: bytes, answer: Document) -> None:
    """Checks that the returned status contains everything observed, except for the service's own
    changes.
    """
    status = read_pod(read_decorated(body).object).status
    again = answer.get("resyncAfterSeconds", 1)
    hold(isinstance(again, int | float) and again > 0, again)
    observed, now = as_deep_as_readable(msgspec.json.decode, status), answer["status"]
    if now == observed or (now is None and is_too_deep(observed)):
        return
    hold(isinstance(now, dict) and isinstance(observed or {}, dict), now)
    observed = observed or {}
    hold(observed.keys() <= now.keys(), f"lost: {observed.keys() - now.keys()}")
    ours = {key for key in now if key not in observed or now[key] != observed[key]}
    hold(ours <= {"phase", "reason", "message"} or ours == {"conditions"}, ours)
    if "conditions" in ours:
        before = [item.get("type") for item in observed.get("conditions") or []]
        after = [item.get("type") for item in now["conditions"]]
        hold(after[: len(before)] == before, f"{before} becomes {after}")


def check_children(request: Request, answer: Document) -> set[tuple[str, str]]:
    """Checks the children of a response; returns kind and name of the observed children that it
    omits.
    """
    hold(isinstance(answer.get("children"), list), "children is no list")
    found = set()
    namespace = request.part("metadata")["namespace"]
    for child in answer["children"]:
        hold(isinstance(child, dict), child)
        kind, meta = child.get("kind"), child.get("metadata")
        hold(child.get("apiVersion") == API_VERSIONS.get(kind) and isinstance(meta, dict), child)
        name = meta.get("name")
        hold(isinstance(name, str) and name, child)
        hold(meta.get("namespace", namespace) == namespace, meta)
        for strings in ("labels", "annotations"):
            hold(isinstance(meta.get(strings) or {}, dict), child)
        hold((kind, name) not in found, f"{kind} {name} twice")
        found.add((kind, name))
    children = read_children(request.children)
    observed = {("Pod", name_of(pod)) for pod in (children.pods or {}).values()}
    observed |= {
        ("PersistentVolumeClaim", name_of(claim)) for claim in (children.claims or {}).values()
    }
    observed |= {("ControllerRevision", name_of(it)) for it in (children.revisions or {}).values()}
    observed |= {("Service", name_of(each)) for each in (children.services or {}).values()}
    return observed - found


def parsed(answer: bytes) -> Document:
    """Parses a JSON object and raises FindingError if a key is repeated, as Go's decoder would not
    see both.
    """
    text = answer.decode("utf-8")
    document = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    hold(isinstance(document, dict), answer[:100])
    return document


def _once(pairs: list[tuple[str, Any]]) -> Document:
    document = dict(pairs)
    hold(len(document) == len(pairs), f"a key stands twice: {[key for key, _ in pairs]}")
    return document


def _no_constant(text: str) -> None:
    raise FindingError(f"{text} in an answer")


@contextmanager
def no_hang(seconds: float = SECONDS) -> Iterator[None]:
    """Raises `HangError` in the main thread if the block takes longer than `seconds` seconds."""

    def ring(_signal: int, _frame: FrameType | None) -> None:
        raise HangError(f"no answer after {seconds} s")

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)  # of pytest-timeout, if any
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if left:
            signal.setitimer(signal.ITIMER_REAL, max(left - time.monotonic() + began, 0.001))
