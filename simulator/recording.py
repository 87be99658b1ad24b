"""A store that records every write to another store, and can make writes fail.

Tests compare the record with the exact writes that they expect. So the record also contains writes
that were refused and writes that changed nothing.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from simulator.api.store import (
    DEFAULT,
    ApiError,
    ConflictError,
    DeleteOptions,
    InvalidError,
    NotFoundError,
    Store,
)
from simulator.objects.clock import Clock
from simulator.objects.kinds import Kind
from simulator.objects.objects import Object, changed_paths, key_of, version_of

INJECTED = "injected:"
"""The beginning of the message of a failure that `RecordingStore.fail` has set up."""
IGNORED_PATHS = ("metadata.resourceVersion", "metadata.managedFields", "metadata.generation")


@dataclass(frozen=True, slots=True)
class Write:
    """One write by Metacontroller, as `RecordingStore` has recorded it.

    Attributes:
        time: the simulated time of the write, in seconds.
        verb: create, update, status or delete. kind, namespace, name: the object that is written.
        paths: the fields that an update changes.
        outcome: "ok", or "no-op" if the write changed nothing, or the reason of the refusal.
        message: the message of a refusal; empty if the write was not refused.
    """

    time: float
    verb: str
    kind: str
    namespace: str
    name: str
    paths: tuple[str, ...]
    outcome: str
    message: str = ""

    def __str__(self) -> str:
        """Returns the write as one line of text."""
        paths = f" {', '.join(self.paths)}" if self.paths else ""
        outcome = "" if self.outcome == "ok" else f" -> {self.outcome} {self.message}".rstrip()
        return f"{self.verb} {self.kind} {self.name}{paths}{outcome}"


@dataclass(slots=True)
class _Fault:
    verb: str
    kind: str
    times: int
    code: int


class RecordingStore:
    """A store that passes calls on to the store `inner`, and records all writes in `writes`.

    `fail` makes chosen writes fail.
    """

    def __init__(self, inner: Store, clock: Clock) -> None:
        self.writes: list[Write] = []
        self._inner = inner
        self._clock = clock
        self._faults: list[_Fault] = []

    def fail(self, times: int = 1, *, verb: str = "", kind: str = "", code: int = 500) -> None:
        """Makes the next `times` writes fail with the HTTP code 409, 422 or 500.

        `verb` and `kind` restrict this to writes with this verb or of this kind; an empty text
        means any.
        """
        self._faults.append(_Fault(verb, kind, times, code))

    def heal(self) -> None:
        """Cancels all failures that `fail` has set up."""
        self._faults.clear()

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        return self._inner.get(kind, namespace, name)

    def create(self, kind: Kind, obj: Object) -> Object:
        with self._recorded("create", kind, obj):
            created = self._inner.create(kind, obj)
        self._record("create", kind, created)
        return created

    def update(self, kind: Kind, obj: Object) -> Object:
        return self._replace("update", self._inner.update, kind, obj)

    def update_status(self, kind: Kind, obj: Object) -> Object:
        return self._replace("status", self._inner.update_status, kind, obj)

    def _replace(
        self, verb: str, write: Callable[[Kind, Object], Object], kind: Kind, obj: Object
    ) -> Object:
        before, paths = self._difference(kind, obj)
        with self._recorded(verb, kind, obj, paths):
            updated = write(kind, obj)
        outcome = "no-op" if version_of(updated) == before else "ok"
        self._record(verb, kind, obj, paths, outcome)
        return updated

    def delete(
        self, kind: Kind, namespace: str, name: str, options: DeleteOptions = DEFAULT
    ) -> None:
        target = {"metadata": {"namespace": namespace, "name": name}}
        with self._recorded("delete", kind, target):
            self._inner.delete(kind, namespace, name, options)
        self._record("delete", kind, target)

    def _difference(self, kind: Kind, obj: Object) -> tuple[str, tuple[str, ...]]:
        try:
            live = self._inner.get(kind, *key_of(obj))
        except NotFoundError:
            return "", ()
        paths = tuple(path for path in changed_paths(live, obj) if path not in IGNORED_PATHS)
        return version_of(live), paths

    @contextmanager
    def _recorded(
        self, verb: str, kind: Kind, obj: Object, paths: tuple[str, ...] = ()
    ) -> Iterator[None]:
        """Runs the write in the `with` block, and records the write if it is refused.

        If `fail` has set up an error for this write, the error is raised and the block does not
        run.

        Args:
            verb: the verb of the write: create, update, status or delete.
            kind: the kind of the object.
            obj: the object that is written.
            paths: the fields that an update changes.
        """
        try:
            self._maybe_fail(verb, kind)
            yield
        except ApiError as error:
            self._record(verb, kind, obj, paths, error.reason, str(error))
            raise

    def _record(  # noqa: PLR0913, PLR0917 - what a `Write` holds
        self,
        verb: str,
        kind: Kind,
        obj: Object,
        paths: tuple[str, ...] = (),
        outcome: str = "ok",
        message: str = "",
    ) -> None:
        now, (namespace, name) = self._clock.now, key_of(obj)
        self.writes.append(Write(now, verb, kind.name, namespace, name, paths, outcome, message))

    def _maybe_fail(self, verb: str, kind: Kind) -> None:
        for fault in self._faults:
            if fault.times and fault.verb in ("", verb) and fault.kind in ("", kind.name):
                fault.times -= 1
                error = {409: ConflictError, 422: InvalidError}.get(fault.code, ApiError)
                raise error(f"{INJECTED} {verb} {kind.name}")
