"""The address to listen on and the number of workers, from the environment or refused in a line."""

import ipaddress
import os
import re
import socket
from collections.abc import Mapping
from contextlib import closing

LOCAL = "127.0.0.1"
MOST_WORKERS = 1_024  # Above it a number is a slip: each worker is a process
_LARGEST_PORT = 65_535


def host(environ: Mapping[str, str] = os.environ) -> str:
    """The host to listen on, without brackets; `::` is all addresses of both families.

    Raises SystemExit: HOST has a port, or something else that is no host.
    """
    text = environ.get("HOST") or LOCAL
    found = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    if ":" in found:
        wrong = f"error: HOST={text} is no host: set an address or a name, and PORT apart"
        try:
            ipaddress.ip_address(found)
        except ValueError:
            raise SystemExit(wrong) from None
    return found


def port(environ: Mapping[str, str] = os.environ) -> int:
    """The port to listen on; raises SystemExit where PORT is none."""
    return _number(environ, "PORT", 8080, _LARGEST_PORT, "a port")


def workers(environ: Mapping[str, str] = os.environ) -> int:
    """The number of worker processes; raises SystemExit where WEB_CONCURRENCY makes no sense."""
    default = os.cpu_count() or 2
    return _number(environ, "WEB_CONCURRENCY", default, MOST_WORKERS, "a number of workers")


def bind(environ: Mapping[str, str] = os.environ) -> str:
    """`HOST:PORT` as gunicorn takes it.

    Where the system has no IPv6, `::` means all addresses of IPv4; `0.0.0.0` is these alone.
    """
    name, number = host(environ), port(environ)
    if name == "::" and not _has_ipv6():
        name = "0.0.0.0"  # noqa: S104 - all that there are, as it was asked for
    return f"[{name}]:{number}" if ":" in name else f"{name}:{number}"


def reached(environ: Mapping[str, str] = os.environ) -> tuple[str, int]:
    """Host and port by which this machine reaches what listens there."""
    name = host(environ)
    if name in ("::", "0.0.0.0"):  # noqa: S104 - what was asked for
        name = "::1" if name == "::" and _has_ipv6() else LOCAL
    return name, port(environ)


def _number(environ: Mapping[str, str], name: str, default: int, most: int, what: str) -> int:
    text = environ.get(name, "")
    if not text:
        return default
    if re.fullmatch(r"[0-9]{1,6}", text) is None or not 1 <= int(text) <= most:
        raise SystemExit(f"error: {name}={text[:50]} is not {what}: set one from 1 to {most}")
    return int(text)


def _has_ipv6() -> bool:
    """Tells whether a socket can be bound to an address of IPv6: kernels may be without."""
    try:
        with closing(socket.socket(socket.AF_INET6, socket.SOCK_STREAM)) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True
