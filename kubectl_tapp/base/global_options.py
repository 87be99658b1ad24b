"""kubectl's global options for cluster and user, which every command of the plugin accepts.

These are the options that `kubectl options` prints, except the options for logs and profiles. The
plugin passes them on to each call of kubectl.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class GlobalOption(NamedTuple):
    """A global option of kubectl, such as `--context`: its forms on the command line, and
    its help.
    """

    forms: tuple[str, ...]  # the forms of the option, the long one last: ("-n", "--namespace")
    help: str  # the description of the option, as in kubectl's help
    # the placeholder of the value in the help; "" if the option is a switch without a value
    metavar: str = ""
    is_repeatable: bool = False  # True if a command line may have the option more than once


SHOWN_OPTIONS = {
    "namespace": GlobalOption(
        ("-n", "--namespace"), "If present, the namespace scope for this CLI request.", "NAME"
    ),
    "context": GlobalOption(("--context",), "The name of the kubeconfig context to use.", "NAME"),
    "kubeconfig": GlobalOption(
        ("--kubeconfig",), "Path to the kubeconfig file to use for CLI requests.", "FILE"
    ),
    "as_user": GlobalOption(
        ("--as",),
        "Username to impersonate for the operation. User could be a regular user or a service "
        "account in a namespace.",
        "USER",
    ),
    "request_timeout": GlobalOption(
        ("--request-timeout",),
        "The length of time to wait before giving up on a single server request, such as 1s, 2m "
        "or 3h. A value of zero means don't timeout requests.",
        "30s",
    ),
}
"""Name -> option, for the options that the help of each command shows. The names are Python
identifiers.
"""
GLOBAL_OPTIONS = SHOWN_OPTIONS | {
    "as_group": GlobalOption(
        ("--as-group",),
        "Group to impersonate for the operation, this flag can be repeated to specify multiple "
        "groups.",
        "GROUP",
        is_repeatable=True,
    ),
    "as_uid": GlobalOption(("--as-uid",), "UID to impersonate for the operation.", "UID"),
    "as_user_extra": GlobalOption(
        ("--as-user-extra",),
        "User extras to impersonate for the operation, this flag can be repeated to specify "
        "multiple values for the same key.",
        "KEY=VALUE",
        is_repeatable=True,
    ),
    "cache_dir": GlobalOption(("--cache-dir",), "Default cache directory.", "DIRECTORY"),
    "certificate_authority": GlobalOption(
        ("--certificate-authority",), "Path to a cert file for the certificate authority.", "FILE"
    ),
    "client_certificate": GlobalOption(
        ("--client-certificate",), "Path to a client certificate file for TLS.", "FILE"
    ),
    "client_key": GlobalOption(("--client-key",), "Path to a client key file for TLS.", "FILE"),
    "cluster": GlobalOption(("--cluster",), "The name of the kubeconfig cluster to use.", "NAME"),
    "disable_compression": GlobalOption(
        ("--disable-compression",),
        "If true, opt-out of response compression for all requests to the server.",
    ),
    "insecure_skip_tls_verify": GlobalOption(
        ("--insecure-skip-tls-verify",),
        "If true, the server's certificate will not be checked for validity. This will make your "
        "HTTPS connections insecure.",
    ),
    "kuberc": GlobalOption(
        ("--kuberc",), "Path to the kuberc file to use for preferences.", "FILE"
    ),
    "match_server_version": GlobalOption(
        ("--match-server-version",), "Require server version to match client version."
    ),
    "password": GlobalOption(
        ("--password",), "Password for basic authentication to the API server.", "PASSWORD"
    ),
    "server": GlobalOption(
        ("-s", "--server"), "The address and port of the Kubernetes API server.", "URL"
    ),
    "tls_server_name": GlobalOption(
        ("--tls-server-name",),
        "Server name to use for server certificate validation. If it is not provided, the "
        "hostname used to contact the server is used.",
        "NAME",
    ),
    "token": GlobalOption(
        ("--token",), "Bearer token for authentication to the API server.", "TOKEN"
    ),
    "user": GlobalOption(("--user",), "The name of the kubeconfig user to use.", "NAME"),
    "username": GlobalOption(
        ("--username",), "Username for basic authentication to the API server.", "NAME"
    ),
}
"""Name -> option, for all global options."""
GivenOptions = Mapping[str, Any]  # Name of an option -> its value: a text, a list of texts, or True


def kubectl_arguments(given: GivenOptions) -> Iterator[str]:
    """Yields the options as arguments for kubectl, such as `--context=dev`, except the namespace.

    The namespace is left out because each call adds the namespace that it reads, which may be
    another one.
    """
    for name, target in GLOBAL_OPTIONS.items():
        value = given.get(name)
        if name == "namespace" or value is None:
            continue
        for each in value if target.is_repeatable else [value]:
            yield f"{target.forms[-1]}={each if target.metavar else str(each).lower()}"


def merged_options(before: GivenOptions, more: GivenOptions) -> dict[str, Any]:
    """Returns the options of `before` and `more` together.

    If both contain an option, the result has the value of `more`. For an option that may be given
    more than once, the result has the values of both. In `more`, the values None, False and [] mean
    that the option is not given.
    """
    given = {name: value for name, value in more.items() if value not in (None, False, [])}
    several = {
        name: [*before.get(name, []), *value]
        for name, value in given.items()
        if GLOBAL_OPTIONS[name].is_repeatable
    }
    return {**before, **given, **several}


def with_plain_switches(arguments: list[str]) -> list[str]:
    """Returns a command line with `--switch` instead of `--switch=true`, and without
    `--switch=false`.

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
