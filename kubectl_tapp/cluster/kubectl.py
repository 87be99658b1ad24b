"""Runs the user's own kubectl, and turns its errors into one sentence each.

`Program` runs kubectl. `error_of` recognizes kubectl's error messages and returns a KubectlError.
"""

import os
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Protocol

from kubectl_tapp.base.errors import CommandError, Exit
from kubectl_tapp.base.hints import contexts_hint
from kubectl_tapp.base.streams import note
from kubectl_tapp.cluster.kuberc import without_preferences
from kubectl_tapp.cluster.pod import is_pod

LOGIN_TIMEOUT = 300.0  # The time limit in seconds of a call that may include a login
_USUAL_TIMEOUT = 60.0  # The time limit in seconds of a call after another one has succeeded
_QUIET_SECONDS = 4.0  # Seconds after which the messages of a running kubectl are shown to the user


@dataclass(frozen=True)
class CallResult:
    """The result of one call of kubectl: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str


class Runner(Protocol):
    """The interface through which the plugin runs kubectl: `Program` runs the real program, and
    tests have a replacement.
    """

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs kubectl until it ends, and returns its result.

        `arguments` do not include the program's name. `stdin` is the text for its standard input.
        """

    def follow(self, arguments: Sequence[str]) -> "RunningCall":
        """Starts a kubectl that runs until it is stopped, such as `get --watch`, and returns it."""


class RunningCall(Protocol):
    """A kubectl that was started and may still run, such as `get --watch`."""

    def lines(self) -> Iterator[str]:
        """Yields the lines of standard output until kubectl ends or is stopped."""

    def stop(self) -> None:
        """Ends kubectl at once. Safe to call from any thread."""

    def done(self) -> CallResult:
        """Waits until kubectl ends, and returns its exit code and standard error.

        The standard output in the result is empty, because `lines` has yielded it.
        """


class Program:
    """Runs the kubectl on PATH, or the command in $KUBECTL, with a time limit for each call.

    The plugin itself watches the time and kills the process. `--request-timeout` is passed only if
    the user gave it: with this option kubectl ignores the service account of a pod
    (kubernetes/kubernetes#49343).
    """

    def __init__(self, time_limit: float | None = None) -> None:
        """Sets the time limit of each call in seconds. None sets a limit that is long enough for a
        login.
        """
        self._time_limit = time_limit
        self._has_succeeded = False

    def run(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs kubectl until it ends, and returns its result.

        Raises CommandError if kubectl is missing or does not end within the time limit.
        """
        arguments, environment = without_preferences(arguments)
        # The text is passed through a pipe and not in a temporary file, because a container may
        # have no writable directory.
        given = subprocess.PIPE if stdin else subprocess.DEVNULL
        process = _start([*self._command(), *arguments], environment, given)
        with process:
            if process.stdin is not None:
                _write_stdin(process.stdin, stdin)
                process.stdin = None  # Otherwise `communicate` would close the pipe too early
            try:
                out, err = self._output_when_ended(process)
            except BaseException:
                process.kill()
                raise
        self._has_succeeded |= process.returncode == 0
        return CallResult(process.returncode, out, err)

    def follow(self, arguments: Sequence[str]) -> "RunningCall":
        """Starts a kubectl that runs until it is stopped, and returns the running process."""
        arguments, environment = without_preferences(arguments)
        return _RunningProcess([*self._command(), *arguments], environment)

    def _output_when_ended(self, process: "subprocess.Popen[str]") -> tuple[str, str]:
        """Waits until a kubectl process ends, and returns its standard output and standard error.

        If the process runs for more than `_QUIET_SECONDS`, its messages are shown to the user line
        by line. A login may show a code that the user has to type into a browser. After a message
        that is not a log line of kubectl, the call gets the time limit of a login. Raises
        KubectlError at the limit.
        """
        begun, shown, speaks = time.monotonic(), 0, not self._has_succeeded
        while True:
            limit = self._time_limit or (LOGIN_TIMEOUT if speaks else _USUAL_TIMEOUT)
            left = max(0.0, begun + limit - time.monotonic())
            try:
                return process.communicate(timeout=min(_QUIET_SECONDS, left))
            except subprocess.TimeoutExpired as so_far:
                if time.monotonic() >= begun + limit:
                    raise _timeout_error(limit) from None
                # TimeoutExpired has bytes even for a process in text mode (python/cpython#87597).
                written: Any = so_far.stderr or b""
                complete = written.decode(errors="replace").rpartition("\n")[0]
                if len(complete) > shown:
                    note(f"kubectl: {complete[shown:].strip()}")
                    shown = len(complete)
                    speaks |= any(not _KLOG.match(line) for line in complete.splitlines())

    @staticmethod
    def _command() -> list[str]:
        """Returns the program to run and its first arguments.

        These are the words of $KUBECTL, such as `k3s kubectl`, or `kubectl`. Raises CommandError if
        there is no such program.
        """
        named = os.environ.get("KUBECTL", "").strip() or "kubectl"
        # The complete text is tried as a path first, because a path may contain blanks.
        if shutil.which(named):
            return [named]
        try:
            words = shlex.split(named)
        except ValueError as error:
            raise CommandError(f"the variable KUBECTL is not a command: {error}") from None
        if not words or named == "kubectl":
            raise CommandError(
                "there is no kubectl on PATH: install it, or name it in the variable KUBECTL"
            )
        return words


def _start(
    words: Sequence[str], environment: Mapping[str, str], stdin: int
) -> "subprocess.Popen[str]":
    """Starts kubectl with pipes for its output, and returns the process.

    `words` are the program and its arguments, and `stdin` is a file descriptor or a constant of
    `subprocess`. Raises CommandError if kubectl cannot be started.
    """
    try:
        return subprocess.Popen(  # noqa: S603 - the user's own program, no shell
            words, env=environment, stdin=stdin, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
    except OSError as error:
        message = f"kubectl cannot be run ({error.strerror}): see PATH and $KUBECTL"
        raise CommandError(message) from None


def _write_stdin(pipe: IO[str], text: str) -> None:
    """Writes a text to kubectl's standard input in a thread, and closes the pipe."""

    def write() -> None:
        with suppress(OSError), pipe:  # kubectl may end before it has read the whole text
            pipe.write(text)

    threading.Thread(target=write, daemon=True).start()


def _timeout_error(limit: float) -> "KubectlError":
    hint = "is the cluster reachable?"
    return KubectlError("Timeout", f"kubectl did not end within {limit:.0f} s; {hint}")


class _RunningProcess:
    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = _start(words, environment, subprocess.DEVNULL)
        self._stderr_lines = list[str]()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None  # noqa: S101 - it was asked for
        with self._process.stderr as stream:
            self._stderr_lines += stream

    def lines(self) -> Iterator[str]:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        with self._process.stdout as out:
            yield from out

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def done(self) -> CallResult:
        code = self._process.wait()
        self._listener.join(_QUIET_SECONDS)
        return CallResult(code, "", "".join(self._stderr_lines))


class KubectlError(CommandError):
    """A failed call of kubectl, with a reason that code can compare and a message for the user.

    `reason` is the reason of the API server's Status (`NotFound`, `Conflict`, ...). Other errors
    have reasons of this module: `Denied` (by admission), `NoSuchKind`, `Unreachable`, `Timeout`,
    `NoContext`, `Certificate`, or an empty string.
    """

    def __init__(self, reason: str, message: str, code: Exit = Exit.FAILED) -> None:
        super().__init__(message, code)
        self.reason = reason


# The forms of kubectl's error messages.
_SERVER_ERROR = re.compile(r"^Error from server(?: \((\w+)\))?: (.*)", re.DOTALL | re.MULTILINE)
_INVALID = re.compile(r"^The (?:request|\S+ .*) is invalid:.*", re.DOTALL | re.MULTILINE)
"""The message about an object that fails validation, or about a JSON patch with a failed `test`
operation.
"""
_KLOG = re.compile(r"^[EWIF]\d{4} \d\d:\d\d:\d\d", re.ASCII)
_RESOURCE = re.compile(r'the server doesn\'t have a resource type "([^"]+)"')
_FLAG_HINT = "See 'kubectl"
_UNREACHABLE = (
    "was refused", "no route to host", "no such host", "network is unreachable", "i/o timeout",
    "connection reset", "server misbehaving",
)  # fmt: skip
_NO_CONTEXT = ("does not exist", "was not found", "cannot locate context")
# The server to which kubectl connects if no kubeconfig names a server
_NO_KUBECONFIG = "localhost:8080"
_CERTIFICATE = ("x509:", "tls:", "certificate")
_LOGIN = ("Unauthorized", "must be logged in", "provide credentials", "getting credentials")


_CONFLICTS = re.compile(
    r"Apply failed with \d+ conflicts?:.*?(?=\nPlease review|\Z)", re.DOTALL | re.ASCII
)
"""The message about a server-side apply of fields that other managers own, without the advice that
kubectl prints below it.
"""
_SOURCE_PREFIX = re.compile(
    r'^error when (?:applying patch:\n.*\nfor:|\w+) "(?:STDIN|[^"\n]*)": ', re.DOTALL
)
"""The beginning of a message about a refusal: kubectl's operation and, if kubectl applies a patch,
the complete patch.

Source: k8s.io/kubectl, `AddSourceToErr`.
"""


def error_of(done: CallResult) -> KubectlError:
    """Returns the error that describes a failed call, from kubectl's messages on standard error."""
    lines = [line for line in done.err.splitlines() if line.strip() and not _KLOG.match(line)]
    text = "\n".join(lines) or done.err.strip()
    if not text:
        how = (
            f"was killed by signal {-done.code}"
            if done.code < 0
            else f"ended with code {done.code}"
        )
        return KubectlError("", f"kubectl {how} without a message")
    if found := _RESOURCE.search(text):
        return _unknown_kind_error(found[1])
    message = _one_line(text)
    if any(word in text for word in _LOGIN):
        return KubectlError(
            "Unauthorized", f"the cluster does not accept your credentials: {message}"
        )
    if found := _SERVER_ERROR.search(text):
        return _server_error(
            found[1] or "", _one_line(_SOURCE_PREFIX.sub("", _SOURCE_PREFIX.sub("", found[2])))
        )
    if found := _CONFLICTS.search(text):
        hint = "--force-conflicts takes over the fields"
        return KubectlError("Conflict", f"{_one_line(found[0])}; {hint}")
    if found := _INVALID.search(text):
        return KubectlError("Invalid", _one_line(found[0]))
    if "context" in text and any(words in text for words in _NO_CONTEXT):
        advice = f"{contexts_hint()} lists the contexts"
        return KubectlError("NoContext", f"{message}; {advice}", Exit.USAGE)
    if "deadline exceeded" in text or "Client.Timeout" in text or "request canceled" in text:
        hint = "is the cluster reachable? --request-timeout sets how long to wait"
        return KubectlError("Timeout", f"the cluster did not answer in time ({message}); {hint}")
    if _NO_KUBECONFIG in text:
        return KubectlError("Unreachable", f"no cluster: {_no_kubeconfig_message()}")
    if any(word in text for word in _UNREACHABLE):
        hint = "is it the right --context, and is the cluster up?"
        return KubectlError("Unreachable", f"no cluster: {message}; {hint}")
    if any(word in text for word in _CERTIFICATE):
        return KubectlError("Certificate", f"the cluster's certificate is not trusted: {message}")
    return KubectlError("", f"kubectl: {message}")


def _no_kubeconfig_message() -> str:
    if is_pod():
        return (
            "kubectl uses the service account of this pod only without options of cluster and user "
            "such as --request-timeout and --as: leave them out, or give it a kubeconfig"
        )
    return (
        f"no kubeconfig with a current context was found (kubectl tried {_NO_KUBECONFIG}): set "
        "KUBECONFIG, --kubeconfig or --context"
    )


def _unknown_kind_error(resource: str) -> KubectlError:
    if resource.startswith("tapp"):
        message = (
            "this cluster does not know TApps: check --context, and that the CustomResource"
            "Definition tapps.apps.tkestack.io is installed"
        )
    else:
        message = f"this cluster has no {resource}"
    return KubectlError("NoSuchKind", message)


_BY_AUTHORIZER = re.compile(r"\bcannot \w+ (?:resource|path)\b")
"""The words with which the authorizer reports a missing permission.

Admission plugins that refuse an object also answer Forbidden, but with other words. Source:
k8s.io/apiserver, responsewriters, `forbiddenMessage`.
"""


def _server_error(reason: str, message: str) -> KubectlError:
    if reason == "Forbidden" and not _BY_AUTHORIZER.search(message):
        return KubectlError("Denied", message)
    if reason == "Forbidden":
        return KubectlError(reason, f"no permission: {message}")
    if reason == "Timeout":
        return KubectlError(reason, f"the cluster did not answer in time: {message}")
    if reason == "ServiceUnavailable":
        return KubectlError("Unreachable", f"no cluster: {message}")
    return KubectlError(reason, message)


def _one_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if not line.startswith(_FLAG_HINT)]
    return " ".join(" ".join(lines).split()).removeprefix("error: ").rstrip(".")
