"""Reads the user's preferences for kubectl (kuberc), which change the defaults of its options.

The plugin's own calls of kubectl ignore the preferences (`without_preferences`), because a
preferred option such as `--show-labels` for `get` would break each call. Only the policy for
credential plugins stays in force, because it says which programs kubectl may run.
`preferred_options` returns how the preferences change the user's own `kubectl apply`.

Source: k8s.io/kubectl, pkg/kuberc.
"""

import functools
import json
import os
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_Document = dict[str, Any]

_GROUP, _KIND = "kubectl.config.k8s.io/", "Preference"
_POLICY = ("credentialPluginPolicy", "credentialPluginAllowlist")
_OPTION = "--kuberc="


def kuberc_path(option: str | None) -> Path | None:
    """Returns the path of the file with the user's preferences for kubectl.

    The option `--kuberc` decides first, then the environment variable KUBERC, and then kubectl's
    default path. `option` is None or empty if the option is not given. Returns None if the user has
    switched the preferences off.
    """
    variable = os.environ.get("KUBERC", "")
    if variable == "off" or os.environ.get("KUBECTL_KUBERC", "").lower() == "false":
        return None
    return Path(os.path.expanduser(option or variable or "~/.kube/kuberc"))  # noqa: PTH111 - no user, no error


@functools.cache
def preferences(path: Path | None) -> _Document:
    """Returns the first object of kind Preference in a file.

    Returns {} if the file has no such object or cannot be read, or if `path` is None.
    """
    try:
        data = b"" if path is None else path.read_bytes()
    except OSError:
        return {}
    if not data.strip():
        return {}
    # The YAML parser is imported only now, because the import costs start time and few users have
    # this file.
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


def preferred_options(command: str, path: Path | None) -> dict[str, str]:
    """Returns option name -> default value, as the preferences in a file set them for a command.

    `command` is a command of kubectl, such as `apply`. `path` is None if the preferences are
    switched off.
    """
    found = {}
    known = preferences(path)
    # The fields are `defaults` and `options` in v1beta1, `overrides` and `flags` in v1alpha1.
    for each in _objects(known.get("defaults") or known.get("overrides")):
        if str(each.get("command")).split()[-1:] == [command]:
            for option in _objects(each.get("options") or each.get("flags")):
                found[str(option.get("name"))] = str(option.get("default"))
    return found


def _objects(value: Any) -> list[_Document]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def without_preferences(arguments: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Returns arguments and environment with which kubectl ignores the user's preferences (kuberc).

    The option `--kuberc` is removed from the arguments, because kubectl refuses it together with
    `KUBERC=off`. Only the policy for credential plugins stays in force.
    """
    named = [each.removeprefix(_OPTION) for each in arguments if each.startswith(_OPTION)]
    path = kuberc_path(named[-1] if named else None)
    rest = [each for each in arguments if not each.startswith(_OPTION)]
    return rest, {**os.environ, "KUBERC": _policy_file(path)}


def _policy_file(path: Path | None) -> str:
    """Returns the value for the variable KUBERC: `off`, or the path of a file with the policy.

    The file contains only the policy for credential plugins, copied from the preferences in `path`.
    The value is `off` if they have no such policy. Raises OSError if the file cannot be written:
    the policy is a security setting, so no call may run without it.
    """
    found = preferences(path)
    policy = {key: found[key] for key in _POLICY if key in found}
    if not policy:
        return "off"
    kept = {"apiVersion": found["apiVersion"], "kind": _KIND, **policy}
    return str(_stored(json.dumps(kept)))


_lock = threading.Lock()
_directories: dict[str, "tempfile.TemporaryDirectory[str]"] = {}
"""Text of a policy -> the temporary directory that has its file. Python deletes the directory when
the program ends.
"""


def _stored(text: str) -> Path:
    """Writes the text of a policy to a temporary file, unless the file exists already, and returns
    its path.

    May be called from several threads. The file is checked at each call, because systemd deletes
    old files in /tmp while a program runs for days.
    """
    with _lock:
        known = _directories.get(text)
        if known is not None:
            if (file := Path(known.name) / "kuberc").exists():
                return file
            known.cleanup()
        _directories[text] = directory = tempfile.TemporaryDirectory(prefix="kubectl-tapp-")
        file = Path(directory.name) / "kuberc"
        file.write_text(text, encoding="utf-8")
        return file
