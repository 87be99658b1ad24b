"""How the service starts: empty variables count as not set, and each mistake is one sentence."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hooks.service import start
from hooks.service.settings import Settings
from tests.contract.test_served import REQUEST, fetch
from tests.load.service import HOST, ROOT, Service

pytestmark = pytest.mark.timeout(300)
LONG = 120
EVERY = [f"TAPP_{name.upper()}" for name in Settings.model_fields]
FILES = ["TAPP_TLS_CERT_FILE", "TAPP_TLS_KEY_FILE", "TAPP_TLS_CLIENT_CA_FILE"]
OTHERS = ["PROMETHEUS_MULTIPROC_DIR", "HOST", "PORT", "GUNICORN_CMD_ARGS"]


def mistake(command: tuple[str, ...] = (), **env: str) -> str:
    """What `python -m hooks` says when it does not start: one line, in which nothing is a trace."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("TAPP_")}
    done = subprocess.run(
        [*command, sys.executable, "-m", "hooks"],
        cwd=ROOT,
        env={**environ, **env},
        capture_output=True,
        text=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert all(line.startswith("error: ") for line in lines), done.stderr
    return done.stderr


def test_empty_variables_count_as_not_set() -> None:
    """As a chart writes them whose value is empty."""
    empty = dict.fromkeys([*EVERY, *FILES, *OTHERS], "")
    with Service(workers=1, **empty) as service:
        url = f"http://{HOST}:{service.port}"
        assert fetch(f"{url}/sync", REQUEST)
        assert b"tapp_hook_requests_total" in fetch(f"{url}/metrics")
        assert "Traceback" not in service.output()


def test_an_empty_number_of_workers_counts_as_not_set() -> None:
    """Gunicorn reads the variable itself, before any configuration."""
    done = subprocess.run(
        [sys.executable, "-m", "hooks", "--check-config"],
        cwd=ROOT,
        env={**os.environ, "WEB_CONCURRENCY": ""},
        capture_output=True,
        timeout=LONG,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


WRONG = {
    ("TAPP_MAX_BODY_BYTES", "many"): "set a whole number of at least 1024",
    ("TAPP_MAX_BODY_BYTES", "1"): "set a whole number of at least 1024",
    ("TAPP_MEMO_BYTES", "1.5"): "set a whole number of at least 0",
    ("TAPP_TOLERATION_SECONDS", "-1"): "set a whole number of at least 0",
    ("TAPP_MAX_PULLERS", "0"): "set a whole number of at least 1",
    ("TAPP_BODY_SECONDS", "0"): "set a number above 0 and of at most 600",
    ("TAPP_BODY_SECONDS", "nan"): "set a number above 0 and of at most 600",
    ("TAPP_PACE_SECONDS", "6"): "set a number of at least 0 and of at most 5",
    ("TAPP_EVENTS", "perhaps"): "set true or false",
    ("TAPP_RESIZE", "2"): "set true or false",
    ("TAPP_LOG_LEVEL", "LOUD"): "set DEBUG, INFO, WARNING or ERROR",
    ("PORT", "no"): "is not a port: set one from 1 to 65535",
    ("WEB_CONCURRENCY", "x"): "is not a number of workers: set one from 1 to 1024",
    ("HOST", "a:b"): "is no host: set an address or a name, and PORT apart",
}


@pytest.mark.parametrize(("given", "says"), WRONG.items(), ids=lambda value: str(value)[:50])
def test_a_wrong_value_is_named_with_what_is_allowed(given: tuple[str, str], says: str) -> None:
    name, value = given
    assert re.fullmatch(rf"error: {name}={value} .*{re.escape(says)}\n", mistake(**{name: value}))


def test_each_of_several_wrong_values_has_its_sentence() -> None:
    said = mistake(TAPP_MAX_BODY_BYTES="x", TAPP_EVENTS="x").splitlines()
    assert [line.split("=")[0] for line in said] == [
        "error: TAPP_MAX_BODY_BYTES",
        "error: TAPP_EVENTS",
    ]


@pytest.mark.parametrize("component", ["events", "resize"])
def test_a_component_without_its_account_is_named(tmp_path: Path, component: str) -> None:
    account = {"TAPP_EVENTS_ACCOUNT": str(tmp_path), f"TAPP_{component.upper()}": "true"}
    said = mistake(**account)
    assert f"TAPP_{component.upper()} needs a service account in {tmp_path}" in said
    assert f"Install metacontroller/components/{component}." in said


@pytest.mark.parametrize("given", [FILES[:1], FILES[1:2], FILES[2:], FILES[:2], FILES])
def test_files_for_tls_that_cannot_be_used_are_named(tmp_path: Path, given: list[str]) -> None:
    """A key or a CA without a certificate would be left out silently."""
    said = mistake(**{name: str(tmp_path / "missing") for name in given})
    assert given[0] in said
    assert said.count("\n") == 1


# --- directories ----------------------------------------------------------------------------------


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The variable is not set, and nothing that the test does to it stays."""
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    return monkeypatch


@pytest.mark.parametrize("name", ["there", "missing", "two/levels"])
def test_the_metrics_directory_is_created_and_stays(
    unset: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "there").mkdir()
    unset.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / name))
    made = start.metrics_directory()
    assert made == str(tmp_path / name)
    assert list(Path(made).iterdir()) == []
    start.remove_metrics(made)
    assert Path(made).is_dir()


def test_a_metrics_directory_of_our_own_is_removed(unset: pytest.MonkeyPatch) -> None:
    assert unset
    made = start.metrics_directory()
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == made
    assert Path(made).is_dir()
    start.remove_metrics(made)
    assert not Path(made).exists()


@pytest.mark.parametrize("name", ["a file", "a file/below", "/proc/below", "/dev/null"])
def test_a_metrics_directory_that_cannot_be_used_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").touch()
    given = str(tmp_path / name)
    said = mistake(PROMETHEUS_MULTIPROC_DIR=given)
    assert f"PROMETHEUS_MULTIPROC_DIR={given} cannot be used" in said
    assert "or leave the variable empty" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["missing", "a file", "/proc"])
def test_without_shared_memory_heartbeats_are_written_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setattr(start, "_SHARED_MEMORY", str(tmp_path / name))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert start.heartbeat_directory() == str(tmp_path)


def test_without_any_temporary_directory_the_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_SHARED_MEMORY", "/proc")
    monkeypatch.setattr("tempfile.tempdir", "/proc")
    with pytest.raises(SystemExit, match=r"^error: no temporary file can be written: .*at /tmp$"):
        start.heartbeat_directory()


MOUNTS = {
    "read-only": "mount -t tmpfs -o ro none /dev/shm",
    "full": "mount -t tmpfs -o size=64k none /dev/shm; head -c 64k /dev/zero > /dev/shm/full || :",
    "without inodes": "mount -t tmpfs -o nr_inodes=1 none /dev/shm",
    "absent": "mount -t tmpfs none /dev && mknod /dev/null c 1 3 && mknod /dev/urandom c 1 9",
}


HIDDEN = ("/tmp", "/var/tmp", "/dev/shm")
"""Where something is mounted."""


def unshared(mounts: str) -> tuple[str, ...]:
    """The start of a command line that has these mounts to itself; skips where none may be made."""
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("only root may mount")
    if any(Path(place).is_relative_to(at) for place in (ROOT, sys.prefix) for at in HIDDEN):
        pytest.skip("this clone would be hidden by what is mounted")
    command = ("unshare", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "sh")
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing may be mounted here")
    return command


@pytest.mark.parametrize("mounts", MOUNTS.values(), ids=MOUNTS)
def test_it_starts_whatever_shared_memory_is_like(mounts: str) -> None:
    command = (*unshared(mounts), sys.executable)
    with Service(workers=1, command=command) as service:
        assert service.get("/metrics")[0] == 200


def test_it_starts_with_nothing_writable_but_shared_memory() -> None:
    """A read-only root file system without a volume at /tmp."""
    mounts = "for at in /tmp /var/tmp; do mount -t tmpfs -o ro none $at; done"
    command = (*unshared(mounts), sys.executable)
    with Service(workers=1, command=command, PYTHONDONTWRITEBYTECODE="1") as service:
        assert service.get("/metrics")[0] == 200


def test_with_no_writable_directory_one_sentence_ends_the_start() -> None:
    mounts = "for at in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro none $at; done"
    again = f"{mounts}; mount --bind {ROOT} {ROOT} && mount -o remount,bind,ro {ROOT}; cd {ROOT}"
    said = mistake(unshared(again), PYTHONDONTWRITEBYTECODE="1")
    assert said.startswith("error: no temporary file can be written")
    assert said.count("\n") == 1
