"""`kubectl get --watch`, an event at a time."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.kubectl import Following, failure

DELETED = "DELETED"  # The type of the last event of an object


class Watching:
    """One watch, which ends when the API server ends it, or somebody stops it."""

    def __init__(self, follow: Callable[[], Following]) -> None:
        """`follow` begins it."""
        self._follow = follow
        self._following: Following | None = None
        self._stopped = False

    def events(self) -> Iterator[tuple[str, Document]]:
        """Each change, first all that is there: type, and the object after it; or a CommandError.

        kubectl prints a watch's events a line each, as it prints nothing else. Source:
        k8s.io/cli-runtime, `JSONPrinter`.
        """
        self._following = self._follow()
        if self._stopped:
            self._following.stop()
        for line in self._following.lines():
            found = _read(line)
            if found["type"] == "ERROR":  # the version that it began with is too old
                self._following.stop()
                break
            yield found["type"], found["object"]
        done = self._following.done()
        if done.code > 0 and not self._stopped:
            raise failure(done)

    def stop(self) -> None:
        """Ends it, from any thread."""
        self._stopped = True
        if self._following is not None:
            self._following.stop()


def _read(text: str) -> Document:
    try:
        found = msgspec.json.decode(text)
    except ValueError:
        raise CommandError("kubectl get --watch: its answer is not JSON") from None
    if not (isinstance(found, dict) and isinstance(found.get("object"), dict)):
        raise CommandError("kubectl get --watch: its answer is no event")
    return found


class Watched:
    """The objects of a kind, kept up to date by a watch in a thread of its own.

    `seen` has them by uid, None for what went while the watch was still telling what was there. It
    may be `forbidden`; when it is `ended` begin anew, and `error` says why if somebody should know.
    """

    def __init__(self, watching: Watching, changed: Callable[[], None]) -> None:
        """`changed` is called at every change, and at the end."""
        self._watching, self._changed = watching, changed
        self.seen: dict[str, Document | None] = {}
        self.forbidden, self._told = False, 0.0
        self.ended, self.error = False, ""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            for kind, each in self._watching.events():
                self._told = self._told or time.monotonic()
                uid = each["metadata"]["uid"]
                if kind == DELETED and self._has_told_all():
                    self.seen.pop(uid, None)
                else:
                    self.seen[uid] = None if kind == DELETED else each
                self._changed()
        except CommandError as error:
            if getattr(error, "reason", "") in _UNREADABLE:
                self.forbidden = True
                return
            self.error = str(error)
        self.ended = True
        self._changed()

    def over(self, known: Iterable[Document]) -> list[Document]:
        """The objects that were read when the watch was begun, as the watch has seen them since.

        A watch tells first all that is there. What it does not know by then went in between.
        """
        found: dict[str, Document | None] = {}
        if not self._has_told_all():
            found = {each["metadata"]["uid"]: each for each in known}
        found |= dict(self.seen)
        return [each for each in found.values() if each is not None]

    def _has_told_all(self) -> bool:
        return bool(self._told) and time.monotonic() - self._told > _WHOLE

    def stop(self) -> None:
        """Ends it."""
        self._watching.stop()


_UNREADABLE = ("Forbidden", "NoSuchKind")
_WHOLE = 10.0  # Seconds from a watch's first word after which it has told all that was there
