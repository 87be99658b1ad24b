"""Reads the address to listen on and the number of workers from the environment.

`strip_variables` prepares the variables of the service, and every process calls it first.

An invalid variable ends the start with SystemExit and one line that names the variable.
"""

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from contextlib import closing

LOCAL = "127.0.0.1"
MOST_WORKERS = 1_024  # A larger number is a typing error: each worker is a process
_LARGEST_PORT = 65_535
_OTHERS = ("HOST", "PORT", "WEB_CONCURRENCY", "PROMETHEUS_MULTIPROC_DIR")


def strip_variables() -> None:
    """Removes blanks and line breaks at both ends of all variables that the service reads.

    A variable that was read from a file often ends with a line break. A blank variable becomes
    empty, so it counts as not set.
    """
    for name, value in os.environ.items():
        if value != value.strip() and (name.startswith("TAPP_") or name in _OTHERS):
            os.environ[name] = value.strip()


def host(environ: Mapping[str, str] = os.environ) -> str:
    """Returns the host to listen on, without brackets. `::` means all IPv4 and IPv6 addresses.

    Raises SystemExit if HOST contains a colon and is not an IPv6 address.
    """
    text = environ.get("HOST") or LOCAL
    found = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in found:
        wrong = (
            f"error: HOST={text} is not a host: set an IP address or a host name, and set the port "
            "in PORT"
        )
        try:
            ipaddress.ip_address(found)
        except ValueError:
            raise SystemExit(wrong) from None
    return found


def port(environ: Mapping[str, str] = os.environ) -> int:
    """Returns the port to listen on. Raises SystemExit if PORT is not a port number."""
    return _number(environ, "PORT", 8080, _LARGEST_PORT, "a port")


def workers(environ: Mapping[str, str] = os.environ) -> int:
    """Returns the number of worker processes, by default the number of CPUs.

    Raises SystemExit if WEB_CONCURRENCY is not a number from 1 to 1,024.
    """
    default = os.cpu_count() or 2
    return _number(environ, "WEB_CONCURRENCY", default, MOST_WORKERS, "a number of workers")


def bind(environ: Mapping[str, str] = os.environ) -> str:
    """Returns `HOST:PORT` in the form that gunicorn reads.

    On a system without IPv6, `::` becomes `0.0.0.0`, which means all IPv4 addresses.
    """
    name, number = host(environ), port(environ)
    if name == "::" and not _has_ipv6():
        name = "0.0.0.0"  # noqa: S104 - the operator has asked for all addresses
    return f"[{name}]:{number}" if ":" in name else f"{name}:{number}"


def reached(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Returns the host and the port under which this machine reaches the service.

    If the service listens on all addresses, the host is a loopback address.
    """
    name = host(environ)
    if name in ("::", "0.0.0.0"):  # noqa: S104 - compares only
        name = "::1" if name == "::" and _has_ipv6() else LOCAL
    return name, port(environ)


def _number(environ: Mapping[str, str], name: str, default: int, most: int, what: str) -> int:
    """Returns the number in an environment variable.

    Raises SystemExit if the variable is not a number from 1 to `most`.

    Args:
        environ: the environment variables.
        name: the name of the variable.
        default: the result if the variable is empty or not set.
        most: the largest valid number.
        what: the meaning of the number for the message, such as "a port".
    """
    text = environ.get(name, "")
    if not text:
        return default
    if re.fullmatch(r"[0-9]{1,6}", text) is None or not 1 <= int(text) <= most:
        raise SystemExit(f"error: {name}={text[:50]} is not {what}: set one from 1 to {most}")
    return int(text)


def _has_ipv6() -> bool:
    """Returns True if the kernel can bind a socket to an IPv6 address."""
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True
