"""Tests the addresses on which the service listens: HOST, PORT and WEB_CONCURRENCY."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hooks.service.address import bind, reached

ROOT = Path(__file__).parents[2]
SERVICE = [sys.executable, "-m", "hooks"]


@pytest.mark.parametrize(
    ("host", "bound", "probed"),
    [
        (None, "127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("", "127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("0.0.0.0", "0.0.0.0:8080", ("127.0.0.1", 8080)),
        ("10.0.0.7", "10.0.0.7:8080", ("10.0.0.7", 8080)),
        ("::1", "[::1]:8080", ("::1", 8080)),
        ("[::1]", "[::1]:8080", ("::1", 8080)),
        ("fd00::7", "[fd00::7]:8080", ("fd00::7", 8080)),
        ("localhost", "localhost:8080", ("localhost", 8080)),
    ],
    ids=lambda part: part or "not set" if isinstance(part, str | None) else "",
)
def test_service_listens_on_a_host_and_its_health_check_connects_to_it(
    host: str | None, bound: str, probed: tuple[str, int]
) -> None:
    environ = {} if host is None else {"HOST": host}
    assert bind(environ) == bound
    assert reached(environ) == probed


@pytest.mark.parametrize("host", ["::", "[::]"])
def test_unspecified_ipv6_address_listens_on_both_families(host: str) -> None:
    """With the host `::` the service listens on IPv6 and IPv4; without IPv6 in the system, on IPv4
    only.
    """
    assert bind({"HOST": host, "PORT": "80"}) in ("[::]:80", "0.0.0.0:80")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("WEB_CONCURRENCY", "0"),
        ("WEB_CONCURRENCY", "-1"),
        ("WEB_CONCURRENCY", "two"),
        ("WEB_CONCURRENCY", "٣"),
        ("WEB_CONCURRENCY", "1000000"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("PORT", "http"),
        ("HOST", "127.0.0.1:8080"),
        ("HOST", "[::1]:8080"),
        ("HOST", "::g"),
    ],
)
def test_invalid_address_is_refused_at_the_start(name: str, value: str) -> None:
    """`--check-config` prints one line with the variable and its value, and exits with code 1."""
    done = subprocess.run(
        [*SERVICE, "--check-config"], cwd=ROOT, env=os.environ | {name: value},
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {name}={value} is no")
    assert done.stderr.count("\n") == 1


NETWORKS = {
    "IPv6 only": "ip address delete 127.0.0.1/8 dev lo",
    "IPv4 only": "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1",
    "both": "true",
}
SERVE = """\
ip link set lo up
{change}
python="$1"; shift
"$python" -m hooks & server=$!
tries=0
until "$python" -m hooks.service.healthcheck 2>/dev/null; do
  tries=$((tries + 1)); [ $tries -lt 100 ] || exit 1; sleep 0.1
done
kill $server; wait $server
"""


@pytest.mark.parametrize("network", NETWORKS)
def test_health_check_succeeds_with_ipv4_ipv6_or_both(network: str) -> None:
    """Starts the service in a network namespace with IPv4, IPv6 or both, and runs the health check.

    The health check does not use the proxy that the environment configures.
    """
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("a network of its own needs root, unshare and ip")
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    script = SERVE.format(change=NETWORKS[network])
    done = subprocess.run(
        ["unshare", "--net", "sh", "-ec", script, "sh", sys.executable],
        cwd=ROOT, env=os.environ | proxy | {"HOST": "::", "PORT": "8080", "WEB_CONCURRENCY": "1"},
        text=True, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
