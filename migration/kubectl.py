"""Reads and writes the cluster through the user's kubectl, so that contexts and plugins work."""

from __future__ import annotations  # for Python 3.9

import json
import os
import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

MAX_SECONDS = 300.0  # Seconds, including a login, after which a call of kubectl is stopped


@dataclass(frozen=True)
class Finished:
    """The result of a command that has ended: its exit code, standard output and standard error."""

    code: int
    out: str
    err: str


Runner = Callable[[Sequence[str]], Finished]


class KubectlError(Exception):
    """A call of kubectl has failed.

    `reason` is the reason of the API server, such as `NotFound`. It is `NoSuchKind` for an unknown
    resource type, and empty for other errors.
    """

    def __init__(self, command: str, message: str) -> None:
        """Builds the message from the command line of the call and from kubectl's error output."""
        super().__init__(f"{command}: {message}")
        self.reason = _reason(message)


def _without_preferences() -> dict[str, str]:
    """Returns the environment for a call of kubectl that ignores the user's preferences (kuberc).

    Preferences might add options such as `--show-labels`. The environment does not hide a kuberc
    with a policy for credential plugins, because the policy says which programs kubectl may run.
    """
    # Path.expanduser fails for a user without a home directory.
    path = Path(os.path.expanduser(os.environ.get("KUBERC") or "~/.kube/kuberc"))  # noqa: PTH111
    try:
        policy = "credentialPluginPolicy" in path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        policy = False
    return {**os.environ} if policy else {**os.environ, "KUBERC": "off"}


def run(command: Sequence[str]) -> Finished:
    """Runs a command until it ends, without the user's preferences for kubectl (kuberc).

    Returns its exit code and output. Raises subprocess.TimeoutExpired if the command does not end
    within `MAX_SECONDS`.
    """
    done = subprocess.run(  # noqa: S603
        command,
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_SECONDS,
        env=_without_preferences(),
    )
    return Finished(done.returncode, done.stdout, done.stderr)


class Kubectl:
    """Reads and patches the objects of one cluster, by calls of kubectl."""

    def __init__(self, kubeconfig: str = "", context: str = "", runner: Runner = run) -> None:
        """Prepares the calls of kubectl.

        Args:
            kubeconfig: the path of the kubeconfig; empty to leave the choice to kubectl.
            context: the context in the kubeconfig; empty to leave the choice to kubectl.
            runner: runs a command and returns its result.
        """
        self._run = runner
        # With --request-timeout kubectl would ignore the service account of a pod
        # (kubernetes/kubernetes#49343).
        self._start = ["kubectl"]
        if kubeconfig:
            self._start.append(f"--kubeconfig={kubeconfig}")
        if context:
            self._start.append(f"--context={context}")

    @property
    def target(self) -> str:
        """The options that select the cluster, for commands that a user pastes, with a leading
        blank.

        Empty if the user has selected no kubeconfig and no context.
        """
        return "".join(f" {shlex.quote(word)}" for word in self._start[1:])

    def list(self, resource: str, namespace: str | None, *more: str) -> list[Json]:
        """Returns all objects of a resource type, such as `tapps.apps.tkestack.io`.

        Raises KubectlError if the call fails.

        Args:
            resource: the resource type.
            namespace: the namespace; empty for kubectl's current namespace, None for all
                namespaces.
            more: further arguments for kubectl.
        """
        scope = ["--all-namespaces"] if namespace is None else _namespace_option(namespace)
        items = self._json("get", resource, *scope, *more).get("items")
        return items if isinstance(items, list) else []

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        """Returns one object, or None if the object or its resource type does not exist.

        An empty `namespace` stands for kubectl's current namespace. Raises KubectlError if the call
        fails.
        """
        try:
            return self._json("get", resource, name, *_namespace_option(namespace))
        except KubectlError as error:
            if error.reason in ("NotFound", "NoSuchKind"):
                return None
            raise

    def patch(self, resource: str, namespace: str, name: str, body: Json) -> None:
        """Applies a JSON merge patch to an object.

        An empty `namespace` stands for kubectl's current namespace. Raises KubectlError if the
        patch is refused. `body` is the patch.
        """
        text = json.dumps(body)
        self._text(
            "patch",
            resource,
            name,
            *_namespace_option(namespace),
            "--type=merge",
            f"--patch={text}",
        )

    def _json(self, *arguments: str) -> Json:
        text = self._text(*arguments, "--output=json")
        try:
            found = json.loads(text)
        except ValueError:
            raise KubectlError(_command_line(arguments), "its output is not JSON") from None
        return found if isinstance(found, dict) else {}

    def _text(self, *arguments: str) -> str:
        try:
            done = self._run([*self._start, *arguments])
        except OSError as error:
            raise KubectlError(
                "kubectl", f"cannot be run ({error.strerror}); install it, or put it on PATH"
            ) from None
        except subprocess.TimeoutExpired:
            message = (
                f"did not end within {MAX_SECONDS:.0f} s; check that the cluster can be reached"
            )
            raise KubectlError(_command_line(arguments), message) from None
        if done.code:
            message = done.err.strip() or f"it ended with code {done.code} and no message"
            raise KubectlError(_command_line(arguments), message)
        return done.out


def _namespace_option(namespace: str) -> list[str]:
    return [f"--namespace={namespace}"] if namespace else []


def _command_line(arguments: Sequence[str]) -> str:
    return "kubectl " + " ".join(item for item in arguments if not item.startswith("--patch="))


def _reason(message: str) -> str:
    """Returns the reason in an error message of kubectl.

    The reason is `NotFound` for `Error from server (NotFound): ...`, and `NoSuchKind` for an
    unknown resource type. It is empty if the message has no reason.
    """
    if "the server doesn't have a resource type" in message:
        return "NoSuchKind"
    _, found, rest = message.partition("Error from server (")
    return rest.partition(")")[0] if found else ""
