"""kubectl's global options for cluster and user, which every command of the plugin accepts.

These are the options of `kubectl options`, except those for logs and profiles. The plugin passes
them on to each call of kubectl.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class GlobalOption(NamedTuple):
    """A global option of kubectl, such as `--context`."""

    forms: tuple[str, ...]  # the forms of the option, the long one last: ("-n", "--namespace")
    metavar: str = ""  # the placeholder of its value in the help; "" if the option is a switch
    is_repeatable: bool = False  # whether it may be given more than once


SHOWN_OPTIONS = {
    "namespace": GlobalOption(("-n", "--namespace"), "NAME"),
    "context": GlobalOption(("--context",), "NAME"),
    "kubeconfig": GlobalOption(("--kubeconfig",), "FILE"),
    "as_user": GlobalOption(("--as",), "USER"),
    "request_timeout": GlobalOption(("--request-timeout",), "30s"),
}
"""The options that the help of each command shows. The name of each is a Python identifier."""
GLOBAL_OPTIONS = SHOWN_OPTIONS | {
    "as_group": GlobalOption(("--as-group",), "GROUP", is_repeatable=True),
    "as_uid": GlobalOption(("--as-uid",), "UID"),
    "as_user_extra": GlobalOption(("--as-user-extra",), "KEY=VALUE", is_repeatable=True),
    "cache_dir": GlobalOption(("--cache-dir",), "DIRECTORY"),
    "certificate_authority": GlobalOption(("--certificate-authority",), "FILE"),
    "client_certificate": GlobalOption(("--client-certificate",), "FILE"),
    "client_key": GlobalOption(("--client-key",), "FILE"),
    "cluster": GlobalOption(("--cluster",), "NAME"),
    "disable_compression": GlobalOption(("--disable-compression",)),
    "insecure_skip_tls_verify": GlobalOption(("--insecure-skip-tls-verify",)),
    "kuberc": GlobalOption(("--kuberc",), "FILE"),
    "match_server_version": GlobalOption(("--match-server-version",)),
    "password": GlobalOption(("--password",), "PASSWORD"),
    "server": GlobalOption(("-s", "--server"), "URL"),
    "tls_server_name": GlobalOption(("--tls-server-name",), "NAME"),
    "token": GlobalOption(("--token",), "TOKEN"),
    "user": GlobalOption(("--user",), "NAME"),
    "username": GlobalOption(("--username",), "NAME"),
}
"""All options, by name."""
GivenOptions = Mapping[str, Any]  # Name of an option -> its value: a text, a list of texts, or True


def kubectl_arguments(given: GivenOptions) -> Iterator[str]:
    """Yields the options as arguments for kubectl, except the namespace.

    Each call of kubectl sets the namespace itself, because it may read another namespace.
    """
    for name, target in GLOBAL_OPTIONS.items():
        value = given.get(name)
        if name == "namespace" or value is None:
            continue
        for each in value if target.is_repeatable else [value]:
            yield f"{target.forms[-1]}={each if target.metavar else str(each).lower()}"


def merged_options(before: GivenOptions, more: GivenOptions) -> dict[str, Any]:
    """Returns the options of `before` and `more` together.

    If both have an option, the value of `more` wins. The values of an option that may be given more
    than once are joined.
    """
    given = {name: value for name, value in more.items() if value not in (None, False, [])}
    several = {
        name: [*before.get(name, []), *value]
        for name, value in given.items()
        if GLOBAL_OPTIONS[name].is_repeatable
    }
    return {**before, **given, **several}


def with_plain_switches(arguments: list[str]) -> list[str]:
    """Replaces `--switch=true` by `--switch` in a command line, and drops `--switch=false`.

    kubectl accepts these forms for its switches, but the parser of the plugin does not.
    """
    switches = {each.forms[-1] for each in GLOBAL_OPTIONS.values() if not each.metavar}
    found = []
    for word in arguments:
        name, _, value = word.partition("=")
        if name not in switches or value.lower() not in ("true", "false"):
            found.append(word)
        elif value.lower() == "true":
            found.append(name)
    return found
