"""The user's preferences for kubectl (kuberc), which set other defaults for kubectl's options.

The plugin's own calls of kubectl ignore the preferences, by means of `without_preferences`: an
option such as `--show-labels` of `get` would break every call. Only the policy for credential
plugins stays in force, because it says which programs kubectl may run. `options_of` tells how the
preferences change the user's own `kubectl apply`. Source: k8s.io/kubectl, pkg/kuberc.
"""

import functools
import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_Document = dict[str, Any]

_GROUP, _KIND = "kubectl.config.k8s.io/", "Preference"
_POLICY = ("credentialPluginPolicy", "credentialPluginAllowlist")
_OPTION = "--kuberc="


def path_of(option: str | None) -> Path | None:
    """Returns the file with the preferences: of the option, of KUBERC, or kubectl's own place.

    None if the preferences are switched off.
    """
    variable = os.environ.get("KUBERC", "")
    if variable == "off" or os.environ.get("KUBECTL_KUBERC", "").lower() == "false":
        return None
    return Path(os.path.expanduser(option or variable or "~/.kube/kuberc"))  # noqa: PTH111 - no user, no error


@functools.cache
def preferences(path: Path | None) -> _Document:
    """Returns the first Preference in a file; an empty one if there is none that can be read."""
    try:
        data = b"" if path is None else path.read_bytes()
    except OSError:
        return {}
    if not data.strip():
        return {}
    # To import a YAML parser costs start time, and few people have such a file.
    from kubectl_tapp.base.manifests import ManifestError, read_manifests  # noqa: PLC0415

    try:
        documents = read_manifests(data)
    except ManifestError:
        return {}
    return next((each for each in documents if _is_preference(each)), {})


def _is_preference(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and str(document.get("apiVersion")).startswith(_GROUP)
        and document.get("kind") == _KIND
    )


def options_of(command: str, path: Path | None) -> dict[str, str]:
    """Returns the options that the preferences set for a command, without dashes -> value."""
    found = {}
    known = preferences(path)
    for each in _objects(known.get("defaults") or known.get("overrides")):  # v1beta1, v1alpha1
        if str(each.get("command")).split()[-1:] == [command]:
            for option in _objects(each.get("options") or each.get("flags")):
                found[str(option.get("name"))] = str(option.get("default"))
    return found


def _objects(value: Any) -> list[_Document]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def without_preferences(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Returns the arguments and the environment of a call of kubectl without preferences.

    `--kuberc` is left out of the arguments, because kubectl refuses it beside `KUBERC=off`.
    """
    named = [each.removeprefix(_OPTION) for each in arguments if each.startswith(_OPTION)]
    path = path_of(named[-1] if named else None)
    rest = [each for each in arguments if not each.startswith(_OPTION)]
    return rest, {**os.environ, "KUBERC": _only_policy(path)}


@functools.cache
def _only_policy(path: Path | None) -> str:
    """Returns `off`, or the name of a file with nothing but the policy for credential plugins."""
    found = preferences(path)
    policy = {key: found[key] for key in _POLICY if key in found}
    if not policy:
        return "off"
    kept = {"apiVersion": found["apiVersion"], "kind": _KIND, **policy}
    try:
        file = Path(_directory().name) / "kuberc"
        file.write_text(json.dumps(kept), encoding="utf-8")
    except OSError:  # without a place for the policy, all preferences stay in force
        return str(path)
    return str(file)


@functools.cache
def _directory() -> "tempfile.TemporaryDirectory[str]":
    """Returns a directory that goes when the program ends."""
    return tempfile.TemporaryDirectory(prefix="kubectl-tapp-")
