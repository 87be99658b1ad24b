"""Where the service listens: HOST, PORT and WEB_CONCURRENCY."""

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
    ("host", "bound", "asked"),
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
)
def test_a_host_is_listened_on_and_asked(
    host: str | None, bound: str, asked: tuple[str, int]
) -> None:
    environ = {} if host is None else {"HOST": host}
    assert bind(environ) == bound
    assert reached(environ) == asked


@pytest.mark.parametrize("host", ["::", "[::]"])
def test_all_addresses_are_those_of_both_families(host: str) -> None:
    """Of IPv4 alone where the system has no IPv6."""
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
def test_what_makes_no_sense_is_refused_at_the_start(name: str, value: str) -> None:
    """In one line, which names the variable and what it is; nothing listens then."""
    done = subprocess.run(
        [*SERVICE, "--check-config"], cwd=ROOT, env=os.environ | {name: value},
        text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {name}={value} is no")
    assert done.stderr.count("\n") == 1


WITHOUT = {
    "IPv6 alone": "ip address delete 127.0.0.1/8 dev lo",
    "IPv4 alone": "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.lo.disable_ipv6=1",
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


@pytest.mark.parametrize("world", WITHOUT)
def test_it_is_healthy_whatever_addresses_there_are(world: str) -> None:
    """In a network of its own; a proxy that is set is not asked."""
    if os.geteuid() != 0 or not shutil.which("unshare") or not shutil.which("ip"):
        pytest.skip("a network of its own needs root, unshare and ip")
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    script = SERVE.format(change=WITHOUT[world])
    done = subprocess.run(
        ["unshare", "--net", "sh", "-ec", script, "sh", sys.executable],
        cwd=ROOT, env=os.environ | proxy | {"HOST": "::", "PORT": "8080", "WEB_CONCURRENCY": "1"},
        text=True, capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
