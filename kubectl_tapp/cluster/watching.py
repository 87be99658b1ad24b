"""Watches objects with `kubectl get --watch`.

`Watching` yields the events of one watch. `Watched` keeps the objects of a watch up to date in a
thread.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.observed import Document
from kubectl_tapp.cluster.kubectl import RunningCall, error_of

DELETED = "DELETED"  # The event type of a deleted object


class Watching:
    """One watch of objects, run by `kubectl get --watch`.

    The watch ends when the API server ends it, or when `stop` is called.
    """

    def __init__(self, follow: Callable[[], RunningCall]) -> None:
        """Prepares the watch without starting kubectl.

        `follow` starts kubectl; the method `events` calls `follow`.
        """
        self._follow = follow
        self._following: RunningCall | None = None
        self._stopped = False

    def events(self) -> Iterator[tuple[str, Document]]:
        """Starts kubectl, and yields the event type and the object of each watch event.

        The first events list all existing objects. kubectl prints each watch event on one line.
        Source: k8s.io/cli-runtime, `JSONPrinter`. Raises CommandError if kubectl fails.
        """
        self._following = self._follow()
        if self._stopped:  # `stop` was called before kubectl was started
            self._following.stop()
        for line in self._following.lines():
            found = _read(line)
            # The resource version has expired, so the caller has to start a new watch
            if found["type"] == "ERROR":
                self._following.stop()
                break
            yield found["type"], found["object"]
        done = self._following.done()
        if done.code > 0 and not self._stopped:
            raise error_of(done)

    def stop(self) -> None:
        """Ends the watch. Safe to call from any thread."""
        self._stopped = True
        if self._following is not None:
            self._following.stop()


def _read(text: str) -> Document:
    try:
        found = msgspec.json.decode(text)
    except ValueError:
        raise CommandError("kubectl get --watch returned text that is not JSON") from None
    if not (isinstance(found, dict) and isinstance(found.get("object"), dict)):
        raise CommandError("kubectl get --watch returned JSON that is not a watch event")
    return found


class Watched:
    """The objects of a resource type, kept up to date by a watch in a separate thread.

    Attributes:
        seen: uid -> the object. A deleted object is removed. While the watch still lists the
            existing objects, the value of a deleted object is None. So a later entry of the list
            does not add the object again.
        forbidden: True if the user may not watch the resource.
        ended: True if the watch has ended, so that the caller should start a new watch.
        error: the error message with which the watch ended; "" if it ended normally.
    """

    def __init__(self, watching: Watching, changed: Callable[[], None]) -> None:
        """Starts a thread that reads the events of the watch `watching`.

        `changed` is called in that thread after each change and at the end of the watch.
        """
        self._watching, self._changed = watching, changed
        self.seen: dict[str, Document | None] = {}
        self.forbidden, self._first_event_at = False, 0.0
        self.ended, self.error = False, ""
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        try:
            for kind, each in self._watching.events():
                self._first_event_at = self._first_event_at or time.monotonic()
                uid = each["metadata"]["uid"]
                if kind == DELETED and self._has_listed_all():
                    self.seen.pop(uid, None)
                else:
                    self.seen[uid] = None if kind == DELETED else each
                self._changed()
        except CommandError as error:
            if getattr(error, "reason", "") in _UNREADABLE:
                self.forbidden = True
                return
            self.error = str(error)
        except Exception as error:  # noqa: BLE001 - without this, the caller would wait forever
            self.error = f"internal error of kubectl-tapp: {error!r}"
        self.ended = True
        self._changed()

    def current(self, known: Iterable[Document]) -> list[Document]:
        """Returns the objects that exist now, according to the watch.

        `known` are the objects that were read when the watch was started. A watch first lists all
        existing objects, but does not say where the list ends. So for ten seconds after the first
        event, objects of `known` that the watch has not listed count as existing. After that they
        count as deleted.
        """
        found: dict[str, Document | None] = {}
        if not self._has_listed_all():
            found = {each["metadata"]["uid"]: each for each in known}
        found |= dict(self.seen)
        return [each for each in found.values() if each is not None]

    def _has_listed_all(self) -> bool:
        return (
            bool(self._first_event_at)
            and time.monotonic() - self._first_event_at > _LISTING_SECONDS
        )

    def stop(self) -> None:
        """Ends the watch and its kubectl. The thread ends soon afterwards."""
        self._watching.stop()


_UNREADABLE = ("Forbidden", "NoSuchKind")
_LISTING_SECONDS = (
    10.0  # Seconds after the first event, by which a watch has listed all existing objects
)
