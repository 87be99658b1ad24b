"""A fake kubectl in front of the simulated cluster, and calls of the plugin through it.

The fake is the demo's kubectl (`demo/kubectl.py`). It records all calls, and a test can make it
refuse calls as a real cluster does.
"""

import contextlib
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from demo.kubectl import Document, Followed, Kubectl, RefusedError
from kubectl_tapp.cluster.kubectl import CallResult
from kubectl_tapp.main import run
from simulator.api.store import NotFoundError
from simulator.objects.kinds import Kind
from simulator.objects.objects import key_of
from tapp.kube.merges import kubectl_applied
from tests.plugin.applying import by_server, managed, refused_as_by_kubectl

USER = "jane"


@dataclass
class StandIn(Kubectl):
    """A kubectl with the functions that the plugin uses."""

    calls: list[list[str]] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    failing: dict[str, str] = field(default_factory=dict)
    before: list[Callable[[], object]] = field(default_factory=list)
    guarded: set[str] = field(default_factory=set)
    managers: dict[str, Document] = field(default_factory=dict)
    followed: list[Followed] = field(default_factory=list)

    def forbid(self, *pairs: str) -> None:
        """Forbids `verb resource` pairs."""
        self.forbidden |= set(pairs)

    @property
    def writes(self) -> list[list[str]]:
        """The calls that write, without dry runs."""
        verbs = {"patch", "create", "replace", "apply", "delete"}
        return [call for call in self.calls if verbs & set(call) and "--dry-run=server" not in call]

    # The calls of the plugin.

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Keeps the arguments of a call in `calls`, and answers the call."""
        self.calls.append(list(arguments))
        return super().run(arguments, stdin)

    def follow(self, arguments: Sequence[str]) -> Followed:
        self.calls.append(list(arguments))
        found = super().follow(arguments)
        self.followed.append(found)
        return found

    def _answer(self, arguments: list[str], stdin: str) -> str:
        line = " ".join(arguments)
        for text, said in self.failing.items():
            if text in line:
                raise RefusedError(said)
        return super()._answer(arguments, stdin)

    def _writes(self, *, dry: bool) -> None:
        if not dry and self.before:
            self.before.pop(0)()

    def _managed(self, live: Document) -> Document:
        return managed(live, self.managers)

    def _applied(
        self, kind: Kind, document: Document, options: dict[str, str], dry: bool
    ) -> Document:
        """Runs a client-side or server-side `kubectl apply`."""
        try:
            live = dict(self.world.cluster.get(kind, *key_of(document)))
        except NotFoundError:
            return document if dry else dict(self.world.apply(document))
        if "--server-side" not in options:
            if not dry:
                return dict(self.world.apply(document))
            with refused_as_by_kubectl(document):
                return self._update(kind, kubectl_applied(live, document), dry)
        manager = options["--field-manager"]
        merged = by_server(live, self.managers.get(manager, {}), document)
        if not dry:
            self.managers[manager] = document
        return self._update(kind, merged, dry)

    def _evict(self, eviction: Document, options: dict[str, str]) -> str:
        self._check("create", "pods/eviction", None, options)
        if eviction["metadata"]["name"] in self.guarded:
            message = "Cannot evict pod as it would violate the pod's disruption budget."
            raise RefusedError(f"Error from server (TooManyRequests): {message}")
        return super()._evict(eviction, options)

    def _kind(self, word: str) -> tuple[Kind | None, str]:
        resource = word.partition(".")[0]
        if resource in self.missing or word in self.missing:
            raise RefusedError(f'error: the server doesn\'t have a resource type "{resource}"')
        return super()._kind(word)

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


@dataclass(frozen=True)
class Said:
    """The output and the exit code of a call."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output without trailing blanks."""
        return [line.rstrip() for line in self.out.splitlines()]


def kubectl_tapp(standin: StandIn, *arguments: str, stdin: str = "") -> Said:
    """Runs the plugin once, at the cluster's time."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdin", io.StringIO(stdin))
        patched.delenv("COLUMNS", raising=False)  # pytest-xdist sets it to 80
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(
                arguments, runner=standin, clock=standin.world.clock.unix, sleep=standin.world.run
            )
    return Said(int(code), out.getvalue(), err.getvalue())
