"""A stand-in for kubectl that works on the embedded cluster.

It supports the calls of the plugin: get, list, watch, patch (JSON and merge patches, with `test`
and resourceVersion), create, replace, evictions and dry runs. Its output and its messages are those
of kubectl.
"""

import json
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import jsonpatch
import msgspec

from kubectl_tapp.cluster.kubectl import CallResult
from simulator.api.store import ApiError, DeleteOptions, Event, NotFoundError
from simulator.objects.kinds import POD, Kind, UnknownKindError
from simulator.objects.objects import key_of, labels_of, name_of, namespace_of, version_of
from simulator.world import World
from tapp.kube.merges import merge_patch

Document = dict[str, Any]

_WORDS_WITHOUT_NAME = 2  # Number of words in a call that names no object, such as `get pods`
_WITH_VALUE = ("-n", "-l", "-o", "-f")
_LONG = {"-n": "--namespace", "-l": "--selector", "-o": "--output", "-f": "--filename"}
_SWITCHES = (
    "--server-side", "--force-conflicts", "--all-namespaces", "--ignore-not-found", "--watch",
    "--output-watch-events", "--minify", "--raw",
)  # fmt: skip


class RefusedError(Exception):
    """A refusal, whose message is the text that the real kubectl would print to standard error."""


@dataclass
class Kubectl:
    """A stand-in for kubectl that reads and writes the embedded cluster."""

    world: World  # the embedded cluster
    namespace: str = "default"  # namespace of the current context
    # protects the cluster against concurrent use, such as by the thread that runs its time
    lock: AbstractContextManager[Any] = field(default_factory=threading.RLock)

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs one call of kubectl and returns its exit code and output.

        Args:
            arguments: the arguments of the call, without the name of the program.
            stdin: the text for the standard input of the call.
        """
        try:
            with self.lock:
                return CallResult(0, self._answer(list(arguments), stdin), "")
        except RefusedError as error:
            return CallResult(1, "", f"{error}\n")
        except ApiError as error:
            return CallResult(1, "", f"Error from server ({error.reason}): {error}\n")

    def follow(self, arguments: Sequence[str]) -> "Followed":
        """Starts `get --watch`, and returns the running watch.

        Its output has an event for each existing object, and later an event for each change.
        """
        words, options = split([*arguments])
        followed = Followed()
        try:
            with self.lock:
                kind, objects = self._found(words, options)
                self._check("watch", words[1], kind, options)
                for each in objects:
                    followed.tell("ADDED", each)
                if kind is not None:
                    self.world.watch(
                        lambda event: _send_event(followed, kind, words, options, event)
                    )
        except RefusedError as error:
            followed.end(f"{error}\n")
        except ApiError as error:
            followed.end(f"Error from server ({error.reason}): {error}\n")
        return followed

    def _answer(self, arguments: list[str], stdin: str) -> str:
        words, options = split(arguments)
        verb = words[0]
        if verb == "config":
            return self.namespace if words[1] == "view" else "here\nthere\n"
        if verb == "get":
            return self._get(words, options)
        dry = options.get("--dry-run") == "server" or '"dryRun"' in stdin
        self._writes(dry=dry)
        if verb == "patch":
            return printed(self._patch(words, options, stdin, dry))
        document = json.loads(stdin)
        if "--raw" in options:
            return self._evict(document, options)
        return printed(self._put(verb, document, options, dry))

    def _writes(self, *, dry: bool) -> None:
        """Does nothing. Subclasses may override this method, which is called before each write.

        `dry` is True if the write is a dry run.
        """

    def _check(self, verb: str, word: str, kind: Kind | None, options: dict[str, str]) -> None:
        """Does nothing, because the user of the demo may do everything.

        The method is called before each operation. Subclasses may override it and raise an error.

        Args:
            verb: the verb of the RBAC rule.
            word: the resource as written in the call.
            kind: the kind; None if the cluster does not have it.
            options: the options of the call.
        """

    def _managed(self, live: Document) -> Document:
        return live

    def _get(self, words: list[str], options: dict[str, str]) -> str:
        output = options.get("--output", "")
        if "--ignore-not-found" in options:
            return self._named(words, options)
        if len(words) > _WORDS_WITHOUT_NAME:
            kind, resource, name = *self._kind(words[1]), words[2]
            self._check("get", resource, kind, options)
            if kind is None:
                raise NotFoundError(f'{resource} "{name}" not found')
            live = self._live(kind, options, name)
            shown = options.get("--show-managed-fields") == "true"
            return printed(self._managed(live) if shown else live)
        _, objects = self._found(words, options)
        if output.startswith("jsonpath"):
            return " ".join(name_of(each) for each in objects)
        return printed({"apiVersion": "v1", "kind": "List", "items": objects})

    def _named(self, words: list[str], options: dict[str, str]) -> str:
        kind, resource = self._kind(words[1])
        self._check("get", resource, kind, options)
        assert kind is not None  # noqa: S101 - nothing of another kind is there
        names = set(words[2:])
        objects = self.world.cluster.list(kind, self._where(options))
        found = [dict(each) for each in objects if name_of(each) in names]
        if len(names) == 1 or not found:
            return printed(found[0]) if found else ""
        return printed({"apiVersion": "v1", "kind": "List", "items": found})

    def _found(
        self, words: list[str], options: dict[str, str]
    ) -> tuple[Kind | None, list[Document]]:
        kind, resource = self._kind(words[1])
        self._check("get" if len(words) > _WORDS_WITHOUT_NAME else "list", resource, kind, options)
        if kind is None:
            return None, []
        if len(words) > _WORDS_WITHOUT_NAME:
            return kind, [self._live(kind, options, words[2])]
        everywhere = "--all-namespaces" in options or not kind.namespaced
        objects = self.world.cluster.list(kind, None if everywhere else self._where(options))
        return kind, [dict(each) for each in objects if matches(each, options)]

    def _live(self, kind: Kind, options: dict[str, str], name: str) -> Document:
        return dict(self.world.cluster.get(kind, self._where(options), name))

    def _patch(self, words: list[str], options: dict[str, str], stdin: str, dry: bool) -> Document:
        kind, resource = self._kind(words[1])
        self._check("patch", resource, kind, options)
        assert kind is not None  # noqa: S101 - nothing of another kind is there
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
        self,
        kind: Kind,  # noqa: ARG002 - the stand-in of the tests has it
        document: Document,
        options: dict[str, str],  # noqa: ARG002
        dry: bool,
    ) -> Document:
        return document if dry else dict(self.world.apply(document))

    def _update(self, kind: Kind, changed: Document, dry: bool) -> Document:
        cluster = self.world.cluster.detached_copy() if dry else self.world.cluster
        return dict(cluster.update(kind, changed))

    def _evict(self, eviction: Document, options: dict[str, str]) -> str:
        self._check("create", "pods/eviction", None, options)
        name, space = eviction["metadata"]["name"], eviction["metadata"]["namespace"]
        assert options["--raw"] == f"/api/v1/namespaces/{space}/pods/{name}/eviction"  # noqa: S101
        asked = eviction["deleteOptions"]
        if "dryRun" not in asked:
            uid = DeleteOptions(uid=asked["preconditions"]["uid"])
            self.world.cluster.delete(POD, space, name, uid)
        return json.dumps({"kind": "Status", "status": "Success"})

    def _kind(self, word: str) -> tuple[Kind | None, str]:
        try:
            return self.world.kinds.find(word.partition(".")[0]), word
        except UnknownKindError:
            return None, word

    def _where(self, options: dict[str, str]) -> str:
        return options.get("--namespace", self.namespace)


class Followed:
    """A running `get --watch` of the embedded cluster, whose output a reader gets line by line."""

    def __init__(self) -> None:
        """Starts with an empty output. The watch runs until `stop` or `end` is called."""
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._done = CallResult(0, "", "")
        self.ended = False

    def tell(self, type_: str, document: Document) -> None:
        """Adds a watch event to the output. `type_` is ADDED, MODIFIED or DELETED."""
        self._lines.put(json.dumps({"type": type_, "object": document}) + "\n")

    def end(self, error: str = "") -> None:
        """Ends the output.

        If `error` is not empty, it becomes the error output, and the exit code is 1.
        """
        self._done, self.ended = CallResult(int(bool(error)), "", error), True
        self._lines.put(None)

    def lines(self) -> Iterator[str]:
        """Yields the lines of the output until the watch ends; waits for the next line."""
        while (line := self._lines.get()) is not None:
            yield line

    def stop(self) -> None:
        """Ends the watch without an error. The reader of the output calls this method."""
        self.end()

    def done(self) -> CallResult:
        """Returns the exit code and the error output; the standard output of the result is
        empty.
        """
        return self._done


def _send_event(
    followed: Followed, kind: Kind, words: list[str], options: dict[str, str], event: Event
) -> None:
    each = event.object
    named = len(words) <= _WORDS_WITHOUT_NAME or name_of(each) == words[2]
    if followed.ended or event.kind != kind or not named or not matches(each, options):
        return
    type_ = "DELETED" if event.new is None else "ADDED" if event.old is None else "MODIFIED"
    followed.tell(type_, dict(each))


def split(arguments: list[str]) -> tuple[list[str], dict[str, str]]:
    """Splits the arguments of a call into its words, and a mapping from options to their values.

    A short option such as `-n` has its long name in the mapping. The value of an option that takes
    no value is empty.
    """
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


def matches(obj: Document, options: dict[str, str]) -> bool:
    """Returns True if an object matches `--namespace`, `--selector` and `--field-selector`.

    `options` maps these options to their values. An option that is missing matches every object.
    """
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


def printed(document: Document) -> str:
    """Returns a document as indented JSON, as `kubectl --output=json` prints it."""
    return msgspec.json.format(msgspec.json.encode(document), indent=4).decode()


def json_patch(document: Document, operations: list[Document]) -> Document:
    """Returns a document after a JSON patch.

    Raises RefusedError, with the API server's message, if the patch does not fit the document.
    `operations` is the patch, a list of its operations.
    """
    try:
        return dict(jsonpatch.apply_patch(document, operations))
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        raise RefusedError(
            "The request is invalid: the server rejected our request due to an error in our request"
        ) from None
