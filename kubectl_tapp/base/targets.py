"""kubectl's own options of cluster and user (`kubectl options`, but for its logs and profiles)."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Target(NamedTuple):
    """One of these options."""

    words: tuple[str, ...]  # how it is typed, the long form last
    metavar: str = ""  # what its value is; "" for a switch
    several: bool = False  # whether it may be given more than once


COMMON = {
    "namespace": Target(("-n", "--namespace"), "NAME"),
    "context": Target(("--context",), "NAME"),
    "kubeconfig": Target(("--kubeconfig",), "FILE"),
    "as_user": Target(("--as",), "USER"),
    "request_timeout": Target(("--request-timeout",), "30s"),
}
"""The options that the help of each command shows."""
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
"""Name of an option -> the option."""
Given = Mapping[str, Any]  # Name of an option -> what it was given: a text, several, or True


def passed_on(given: Given) -> Iterator[str]:
    """The words for kubectl; the namespace is left to the call, which may be about another one."""
    for name, target in TARGETS.items():
        value = given.get(name)
        if name == "namespace" or value is None:
            continue
        for each in value if target.several else [value]:
            yield f"{target.words[-1]}={each if target.metavar else str(each).lower()}"


def together(before: Given, more: Given) -> dict[str, Any]:
    """Options given first and options given later, joined: the later counts, of several both do."""
    given = {name: value for name, value in more.items() if value not in (None, False, [])}
    several = {
        name: [*before.get(name, []), *value]
        for name, value in given.items()
        if TARGETS[name].several
    }
    return {**before, **given, **several}


def switched(arguments: list[str]) -> list[str]:
    """A command line in which `--switch=true` is `--switch`, as kubectl reads its own."""
    switches = {each.words[-1] for each in TARGETS.values() if not each.metavar}
    found = []
    for word in arguments:
        name, _, value = word.partition("=")
        if name not in switches or value.lower() not in ("true", "false"):
            found.append(word)
        elif value.lower() == "true":
            found.append(name)
    return found
