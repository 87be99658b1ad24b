"""A stand-in for kubectl in front of the simulated cluster, and calls of the plugin through it.

It answers what the plugin asks, in kubectl's words: get, list, watch, patch (json and merge, with
`test` and resourceVersion), create, replace, apply, dry runs. What it is to refuse, as real
clusters do, is set on it.
"""

import contextlib
import copy
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec
import pytest

from kubectl_tapp.cluster.kubectl import Finished
from kubectl_tapp.main import run
from simulator.api.store import ApiError, DeleteOptions, NotFoundError
from simulator.objects.clock import EPOCH
from simulator.objects.kinds import POD, Kind, UnknownKindError
from simulator.objects.objects import key_of, labels_of, name_of, namespace_of, version_of
from simulator.world import World, kubectl_applied, merge_patch
from tests.plugin.applying import RefusedError, by_server, in_its_words, managed

Document = dict[str, Any]

_WITH_VALUE = ("-n", "-l", "-o", "-f")
_LONG = {"-n": "--namespace", "-l": "--selector", "-o": "--output", "-f": "--filename"}
_SWITCHES = (
    "--server-side",
    "--force-conflicts",
    "--all-namespaces",
    "--ignore-not-found",
    "--watch",
    "--output-watch-events",
    "--minify",
    "--raw",
)
USER = "jane"


@dataclass
class StandIn:
    """kubectl, as far as the plugin uses it.

    Attributes:
        world: the cluster.
        namespace: of the current context.
        calls: the arguments of every call.
        forbidden: `verb resource` pairs that the user may not use: `list pods`.
        missing: resources that the cluster does not know.
        failing: text in a call -> what kubectl says instead of doing it.
        meanwhile: what happens one after the other while a watch is open.
        before: called before each write that is no dry run, and taken off the list.
        guarded: pods that a PodDisruptionBudget does not let go now.
        managers: field manager -> the TApp that it applied by the server last.
    """

    world: World
    namespace: str = "default"
    calls: list[list[str]] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    failing: dict[str, str] = field(default_factory=dict)
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    before: list[Callable[[], object]] = field(default_factory=list)
    guarded: set[str] = field(default_factory=set)
    managers: dict[str, Document] = field(default_factory=dict)

    def forbid(self, *pairs: str) -> None:
        """Forbid `verb resource` pairs."""
        self.forbidden |= set(pairs)

    @property
    def writes(self) -> list[list[str]]:
        """The calls that change something, dry runs left out."""
        verbs = {"patch", "create", "replace", "apply", "delete"}
        return [call for call in self.calls if verbs & set(call) and "--dry-run=server" not in call]

    # What the plugin calls.

    def run(self, arguments: Sequence[str], stdin: str = "") -> Finished:
        """One call."""
        self.calls.append(list(arguments))
        try:
            return Finished(0, self._answer(list(arguments), stdin), "")
        except RefusedError as error:
            return Finished(1, "", f"{error}\n")
        except ApiError as error:
            return Finished(1, "", f"Error from server ({error.reason}): {error}\n")

    def _answer(self, arguments: list[str], stdin: str) -> str:
        line = " ".join(arguments)
        for text, said in self.failing.items():
            if text in line:
                raise RefusedError(said)
        words, options = _split(arguments)
        verb = words[0]
        if verb == "config":
            return self.namespace if words[1] == "view" else "here\nthere\n"
        if verb == "get":
            return self._get(words, options)
        dry = options.get("--dry-run") == "server" or '"dryRun"' in stdin
        if not dry and self.before:
            self.before.pop(0)()
        if verb == "patch":
            return _printed(self._patch(words, options, stdin, dry))
        documents = [json.loads(stdin)]
        if "--raw" in options:
            return self._evict(documents[0], options)
        return _printed(self._put(verb, documents[0], options, dry))

    def _get(self, words: list[str], options: dict[str, str]) -> str:
        output = options.get("--output", "")
        if "--ignore-not-found" in options:
            return self._named(words, options)
        if len(words) > 2:
            kind, resource, name = *self._kind(words[1]), words[2]
            self._check("get", resource, kind, options)
            if kind is None:
                raise NotFoundError(f'{resource} "{name}" not found')
            live = self._live(kind, options, name)
            shown = options.get("--show-managed-fields") == "true"
            return _printed(managed(live, self.managers) if shown else live)
        _, objects = self._found(words, options)
        if output.startswith("jsonpath"):
            return " ".join(name_of(each) for each in objects)
        return _printed({"apiVersion": "v1", "kind": "List", "items": objects})

    def _named(self, words: list[str], options: dict[str, str]) -> str:
        """Those of several objects that are there; nothing at all is said where none is."""
        kind, resource = self._kind(words[1])
        self._check("get", resource, kind, options)
        assert kind is not None
        names = set(words[2:])
        objects = self.world.cluster.list(kind, self._where(options))
        found = [dict(each) for each in objects if name_of(each) in names]
        if len(names) == 1 or not found:
            return _printed(found[0]) if found else ""
        return _printed({"apiVersion": "v1", "kind": "List", "items": found})

    def _found(
        self, words: list[str], options: dict[str, str]
    ) -> tuple[Kind | None, list[Document]]:
        kind, resource = self._kind(words[1])
        self._check("get" if len(words) > 2 else "list", resource, kind, options)
        if kind is None:
            return None, []
        if len(words) > 2:
            return kind, [self._live(kind, options, words[2])]
        everywhere = "--all-namespaces" in options or not kind.namespaced
        objects = self.world.cluster.list(kind, None if everywhere else self._where(options))
        return kind, [dict(each) for each in objects if _matches(each, options)]

    def _live(self, kind: Kind, options: dict[str, str], name: str) -> Document:
        return dict(self.world.cluster.get(kind, self._where(options), name))

    def _patch(self, words: list[str], options: dict[str, str], stdin: str, dry: bool) -> Document:
        kind, resource = self._kind(words[1])
        self._check("patch", resource, kind, options)
        assert kind is not None
        live = self._live(kind, options, words[2])
        patch = json.loads(options.get("--patch") or stdin)
        if options["--type"] == "merge":
            changed = merge_patch(live, patch)
        else:
            changed = json_patch(live, patch)
        if not version_of(changed):
            changed["metadata"]["resourceVersion"] = version_of(live)
        if options.get("--subresource") == "status":
            return dict(self.world.cluster.update_status(kind, changed))
        return self._update(kind, changed, dry)

    def _put(self, verb: str, document: Document, options: dict[str, str], dry: bool) -> Document:
        kind = self.world.kinds.of(document)
        self._check("create" if verb == "create" else "update", kind.plural, kind, options)
        if kind.namespaced:
            document["metadata"].setdefault("namespace", self._where(options))
        if verb == "apply":
            return self._applied(kind, document, options, dry)
        if verb == "create":
            return document if dry else dict(self.world.cluster.create(kind, document))
        if not version_of(document):
            live = self.world.cluster.get(kind, *key_of(document))
            document["metadata"]["resourceVersion"] = version_of(live)
        return self._update(kind, document, dry)

    def _applied(
        self, kind: Kind, document: Document, options: dict[str, str], dry: bool
    ) -> Document:
        """`kubectl apply`, by the client or by the server."""
        try:
            live = dict(self.world.cluster.get(kind, *key_of(document)))
        except NotFoundError:
            return document if dry else dict(self.world.apply(document))
        if "--server-side" not in options:
            if not dry:
                return dict(self.world.apply(document))
            with in_its_words(document):
                return self._update(kind, kubectl_applied(live, document), dry)
        manager = options["--field-manager"]
        merged = by_server(live, self.managers.get(manager, {}), document)
        if not dry:
            self.managers[manager] = document
        return self._update(kind, merged, dry)

    def _update(self, kind: Kind, changed: Document, dry: bool) -> Document:
        cluster = copy.copy(self.world.cluster) if dry else self.world.cluster
        if dry:
            return self._tried(cluster, kind, changed)
        return dict(cluster.update(kind, changed))

    @staticmethod
    def _tried(cluster: Any, kind: Kind, changed: Document) -> Document:
        """A write on a shallow copy that nobody listens to."""
        cluster._objects = {each: dict(found) for each, found in cluster._objects.items()}
        cluster._homes, cluster._listeners = dict(cluster._homes), []
        return dict(cluster.update(kind, changed))

    def _evict(self, eviction: Document, options: dict[str, str]) -> str:
        self._check("create", "pods/eviction", None, options)
        name, space = eviction["metadata"]["name"], eviction["metadata"]["namespace"]
        assert options["--raw"] == f"/api/v1/namespaces/{space}/pods/{name}/eviction"
        if name in self.guarded:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            raise RefusedError(f"Error from server (TooManyRequests): {message}")
        asked = eviction["deleteOptions"]
        if "dryRun" not in asked:
            uid = DeleteOptions(uid=asked["preconditions"]["uid"])
            self.world.cluster.delete(POD, space, name, uid)
        return json.dumps({"kind": "Status", "status": "Success"})

    def _kind(self, word: str) -> tuple[Kind | None, str]:
        """The kind, None where nothing of it can be there, and how kubectl calls it."""
        resource = word.partition(".")[0]
        if resource in self.missing or word in self.missing:
            raise RefusedError(f'error: the server doesn\'t have a resource type "{resource}"')
        try:
            return self.world.kinds.find(resource), word
        except UnknownKindError:
            return None, word

    def _check(self, verb: str, word: str, kind: Kind | None, options: dict[str, str]) -> None:
        resource, _, group = word.partition(".")
        if f"{verb} {resource}" not in self.forbidden:
            return
        where = f' in the namespace "{self._where(options)}"'
        if "--all-namespaces" in options or (kind and not kind.namespaced):
            where = " at the cluster scope"
        raise RefusedError(
            f'Error from server (Forbidden): {word} is forbidden: User "{USER}" cannot {verb} '
            f'resource "{resource}" in API group "{group}"{where}'
        )

    def _where(self, options: dict[str, str]) -> str:
        return options.get("--namespace", self.namespace)


def _split(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    words, options, rest = [], {}, iter(arguments)
    for word in rest:
        if word in _WITH_VALUE or (
            word.startswith("--") and "=" not in word and word not in _SWITCHES
        ):
            options[_LONG.get(word, word)] = next(rest)
        elif word.startswith("-"):
            name, _, value = word.partition("=")
            options[name] = value
        else:
            words.append(word)
    return words, options


def _matches(obj: Document, options: dict[str, str]) -> bool:
    where = options.get("--namespace")
    if where and namespace_of(obj) not in ("", where):
        return False
    for term in options.get("--selector", "").split(","):
        key, _, value = term.partition("=")
        if term and labels_of(obj).get(key) != value:
            return False
    for term in options.get("--field-selector", "").split(","):
        path, _, value = term.partition("=")
        found: Any = obj
        for part in path.split("."):
            found = (found or {}).get(part) if term else None
        if term and found != value:
            return False
    return True


def _event(type_: str, obj: Any) -> Iterator[str]:
    text = json.dumps({"type": type_, "object": obj}, indent=4)
    yield from (f"{line}\n" for line in text.splitlines())


def _printed(document: Document) -> str:
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def json_patch(document: Document, operations: list[Document]) -> Document:
    """The document after a JSON patch; a `test` that fails is refused as the API server does it."""
    try:
        return dict(jsonpatch.apply_patch(document, operations))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        raise RefusedError(
            "The request is invalid: the server rejected our request due to an error in our request"
        ) from None


@dataclass(frozen=True)
class Said:
    """What a call printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """Standard output, line by line, without trailing blanks."""
        return [line.rstrip() for line in self.out.splitlines()]


def kubectl_tapp(standin: StandIn, *arguments: str, stdin: str = "") -> Said:
    """One call of the plugin at the cluster's own time."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdin", io.StringIO(stdin))
        patched.delenv("COLUMNS", raising=False)  # pytest-xdist says 80 to its workers
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(
                arguments,
                runner=standin,
                clock=lambda: EPOCH.timestamp() + standin.world.clock.now,
                sleep=standin.world.run,
            )
    return Said(int(code), out.getvalue(), err.getvalue())
