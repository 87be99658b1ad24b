"""Simulates kubectl in front of the simulated cluster, and runs the plugin with it.

The fake kubectl `StandIn` is the demo's kubectl (`demo/kubectl.py`). `StandIn` also stores all
calls, and a test can make the fake kubectl refuse calls as a real cluster does. `kubectl_tapp` runs
the plugin once.
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
from tests.plugin.kubectl_apply import by_server, managed, refused_as_by_kubectl

USER = "jane"


@dataclass
class StandIn(Kubectl):
    """Simulates kubectl: runs the calls of the plugin against a simulated cluster, and stores them.

    Attributes:
        calls: the arguments of all calls.
        forbidden: pairs such as `list pods` for which the user has no permission.
        missing: resources that the API server does not have.
        failing: part of a command line -> the error with which such a call fails.
        before: functions of which each is called before a write, one for each write.
        guarded: names of pods that a PodDisruptionBudget protects from eviction.
        managers: field manager -> the document that it applied last with a server-side apply.
        followed: the watches that have been started.
    """

    calls: list[list[str]] = field(default_factory=list)
    forbidden: set[str] = field(default_factory=set)
    missing: set[str] = field(default_factory=set)
    failing: dict[str, str] = field(default_factory=dict)
    before: list[Callable[[], object]] = field(default_factory=list)
    guarded: set[str] = field(default_factory=set)
    managers: dict[str, Document] = field(default_factory=dict)
    followed: list[Followed] = field(default_factory=list)

    def forbid(self, *pairs: str) -> None:
        """Takes permissions from the user; each is a text such as `list pods`."""
        self.forbidden |= set(pairs)

    @property
    def writes(self) -> list[list[str]]:
        """The arguments of all calls that write; dry runs are left out."""
        verbs = {"patch", "create", "replace", "apply", "delete"}
        return [call for call in self.calls if verbs & set(call) and "--dry-run=server" not in call]

    # The calls of the plugin.

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Stores the arguments of a call in `calls`, and runs the call."""
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
        """Runs `kubectl apply` for a document, and returns the object after it.

        `options` say whether the apply is client-side or server-side; with `dry` nothing is stored.
        """
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
    """The exit code of a call, its standard output, and its standard error."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output without trailing blanks."""
        return [line.rstrip() for line in self.out.splitlines()]


def kubectl_tapp(standin: StandIn, *arguments: str, stdin: str = "") -> Said:
    """Runs `kubectl tapp` once with these arguments at the cluster's time; waiting lets simulated
    time pass.

    `stdin` is the text on standard input, which is not a terminal.
    """
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdin", io.StringIO(stdin))
        patched.delenv("COLUMNS", raising=False)  # pytest-xdist sets it to 80
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(
                arguments, runner=standin, clock=standin.world.clock.unix, sleep=standin.world.run
            )
    return Said(int(code), out.getvalue(), err.getvalue())
