"""kubectl's global options for cluster and user, which every command of the plugin accepts.

These are the options of `kubectl options`, except those for logs and profiles. The plugin passes
them on to each call of kubectl.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Target(NamedTuple):
    """A global option of kubectl, such as `--context`."""

    words: tuple[str, ...]  # the forms of the option, the long one last: ("-n", "--namespace")
    metavar: str = ""  # the placeholder of its value in the help; "" if the option is a switch
    several: bool = False  # whether it may be given more than once


COMMON = {
    "namespace": Target(("-n", "--namespace"), "NAME"),
    "context": Target(("--context",), "NAME"),
    "kubeconfig": Target(("--kubeconfig",), "FILE"),
    "as_user": Target(("--as",), "USER"),
    "request_timeout": Target(("--request-timeout",), "30s"),
}
"""The options that the help of each command shows. The name of each is a Python identifier."""
TARGETS = COMMON | {
    "as_group": Target(("--as-group",), "GROUP", several=True),
    "as_uid": Target(("--as-uid",), "UID"),
    "as_user_extra": Target(("--as-user-extra",), "KEY=VALUE", several=True),
    "cache_dir": Target(("--cache-dir",), "DIRECTORY"),
    "certificate_authority": Target(("--certificate-authority",), "FILE"),
    "client_certificate": Target(("--client-certificate",), "FILE"),
    "client_key": Target(("--client-key",), "FILE"),
    "cluster": Target(("--cluster",), "NAME"),
    "disable_compression": Target(("--disable-compression",)),
    "insecure_skip_tls_verify": Target(("--insecure-skip-tls-verify",)),
    "kuberc": Target(("--kuberc",), "FILE"),
    "match_server_version": Target(("--match-server-version",)),
    "password": Target(("--password",), "PASSWORD"),
    "server": Target(("-s", "--server"), "URL"),
    "tls_server_name": Target(("--tls-server-name",), "NAME"),
    "token": Target(("--token",), "TOKEN"),
    "user": Target(("--user",), "NAME"),
    "username": Target(("--username",), "NAME"),
}
"""All options, by name."""
Given = Mapping[str, Any]  # Name of an option -> its value: a text, a list of texts, or True


def passed_on(given: Given) -> Iterator[str]:
    """Yields the options as arguments for kubectl, except the namespace.

    Each call of kubectl sets the namespace itself, because it may read another namespace.
    """
    for name, target in TARGETS.items():
        value = given.get(name)
        if name == "namespace" or value is None:
            continue
        for each in value if target.several else [value]:
            yield f"{target.words[-1]}={each if target.metavar else str(each).lower()}"


def together(before: Given, more: Given) -> dict[str, Any]:
    """Returns the options of `before` and `more` together.

    If both have an option, the value of `more` wins. The values of an option that may be given more
    than once are joined.
    """
    given = {name: value for name, value in more.items() if value not in (None, False, [])}
    several = {
        name: [*before.get(name, []), *value]
        for name, value in given.items()
        if TARGETS[name].several
    }
    return {**before, **given, **several}


def switched(arguments: list[str]) -> list[str]:
    """Replaces `--switch=true` by `--switch` in a command line, and drops `--switch=false`.

    kubectl accepts these forms for its switches, but the parser of the plugin does not.
    """
    switches = {each.words[-1] for each in TARGETS.values() if not each.metavar}
    found = []
    for word in arguments:
        name, _, value = word.partition("=")
        if name not in switches or value.lower() not in ("true", "false"):
            found.append(word)
        elif value.lower() == "true":
            found.append(name)
    return found
