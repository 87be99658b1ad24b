"""Tests the start of the service: empty variables are ignored, and each mistake is one sentence."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hooks.service import start
from hooks.service.settings import Settings
from tests.contract.client import REQUEST, fetch
from tests.load.service import HOST, ROOT, Service

pytestmark = pytest.mark.timeout(300)
LONG = 120
EVERY = [f"TAPP_{name.upper()}" for name in Settings.model_fields]
FILES = ["TAPP_TLS_CERT_FILE", "TAPP_TLS_KEY_FILE", "TAPP_TLS_CLIENT_CA_FILE"]
OTHERS = ["PROMETHEUS_MULTIPROC_DIR", "HOST", "PORT", "GUNICORN_CMD_ARGS"]


def error_of_start(command: tuple[str, ...] = (), **env: str) -> str:
    """Returns the error of `python -m hooks` with these environment variables.

    Checks that the start fails with lines that begin with `error: `. `command` is put before the
    program.
    """
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


def test_empty_variables_are_ignored() -> None:
    """The service starts and responds if all its variables are empty, as a chart may write them."""
    empty = dict.fromkeys([*EVERY, *FILES, *OTHERS], "")
    with Service(workers=1, **empty) as service:
        url = f"http://{HOST}:{service.port}"
        assert fetch(f"{url}/sync", REQUEST)
        assert b"tapp_hook_requests_total" in fetch(f"{url}/metrics")
        assert "Traceback" not in service.output()


def test_blanks_and_line_breaks_around_variables_are_ignored() -> None:
    """The service starts if its variables are blank, or end with a line break.

    A variable that is read from a file often ends with one.
    """
    blank = dict.fromkeys([*EVERY, *FILES, *OTHERS], " \n")
    given = {"TAPP_START_SECONDS": " 600\n", "TAPP_EVENTS": "false\n", "HOST": "127.0.0.1\n"}
    with Service(workers=1, **(blank | given)) as service:
        assert service.get("/metrics")[0] == 200
        assert "Traceback" not in service.output()


@pytest.mark.parametrize("value", ["", " ", "1\n"])
def test_blank_number_of_workers_is_ignored(value: str) -> None:
    """A blank WEB_CONCURRENCY is no error, although gunicorn itself reads it before its
    configuration.
    """
    done = subprocess.run(
        [sys.executable, "-m", "hooks", "--check-config"],
        cwd=ROOT,
        env={**os.environ, "WEB_CONCURRENCY": value},
        capture_output=True,
        timeout=LONG,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == b""


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
    ("TAPP_PULLER_IMAGE", "Pause:3"): "set an image, such as registry.example.com/pause:3.10.1",
    ("TAPP_PULLER_IMAGE", "two words"): "set an image, such as registry.example.com/pause:3.10.1",
    ("TAPP_START_SECONDS", "30s"): "set a whole number of at least 0",
    ("TAPP_MEMO_BYTES", "1Gi"): "set a whole number of at least 0",
    ("PORT", "no"): "is not a port: set one from 1 to 65535",
    ("WEB_CONCURRENCY", "x"): "is not a number of workers: set one from 1 to 1024",
    ("HOST", "a:b"): "is not a host: set an IP address or a host name, and set the port in PORT",
}


@pytest.mark.parametrize(("given", "says"), WRONG.items(), ids=lambda value: str(value)[:50])
def test_invalid_value_is_an_error_with_the_allowed_values(
    given: tuple[str, str], says: str
) -> None:
    name, value = given
    assert re.fullmatch(
        rf"error: {name}={value} .*{re.escape(says)}\n", error_of_start(**{name: value})
    )


def test_each_invalid_value_is_an_error() -> None:
    said = error_of_start(TAPP_MAX_BODY_BYTES="x", TAPP_EVENTS="x").splitlines()
    assert [line.split("=")[0] for line in said] == [
        "error: TAPP_MAX_BODY_BYTES",
        "error: TAPP_EVENTS",
    ]


@pytest.mark.parametrize("component", ["events", "resize"])
def test_component_without_its_account_is_an_error(tmp_path: Path, component: str) -> None:
    account = {"TAPP_EVENTS_ACCOUNT": str(tmp_path), f"TAPP_{component.upper()}": "true"}
    said = error_of_start(**account)
    assert f"TAPP_{component.upper()} needs a service account in {tmp_path}" in said
    assert f"Install metacontroller/components/{component}." in said


@pytest.mark.parametrize(
    "given",
    [FILES[:1], FILES[1:2], FILES[2:], FILES[:2], FILES],
    ids=["certificate", "key", "CA", "certificate and key", "all"],
)
def test_unusable_tls_file_is_an_error_with_its_variable(tmp_path: Path, given: list[str]) -> None:
    """Missing files, or only some of the TLS variables, are an error that names the first variable.

    A key or a CA without a certificate would be ignored silently.
    """
    said = error_of_start(**{name: str(tmp_path / "missing") for name in given})
    assert given[0] in said
    assert said.count("\n") == 1


# --- directories ----------------------------------------------------------------------------------


@pytest.fixture
def unset(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Unsets PROMETHEUS_MULTIPROC_DIR for a test, and undoes the test's changes of the
    environment.
    """
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    return monkeypatch


@pytest.mark.parametrize("name", ["there", "missing", "two/levels"])
def test_configured_metrics_directory_is_created_and_kept(
    unset: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "there").mkdir()
    unset.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / name))
    made = start.metrics_directory()
    assert made == str(tmp_path / name)
    assert list(Path(made).iterdir()) == []
    start.remove_metrics(made)
    assert Path(made).is_dir()


def test_temporary_metrics_directory_is_removed(unset: pytest.MonkeyPatch) -> None:
    assert unset
    made = start.metrics_directory()
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == made
    assert Path(made).is_dir()
    start.remove_metrics(made)
    assert not Path(made).exists()


@pytest.mark.parametrize("name", ["a file", "a file/below", "/proc/below", "/dev/null"])
def test_unusable_metrics_directory_is_an_error_with_its_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "a file").touch()
    given = str(tmp_path / name)
    said = error_of_start(PROMETHEUS_MULTIPROC_DIR=given)
    assert f"PROMETHEUS_MULTIPROC_DIR={given} cannot be used" in said
    assert "or leave the variable empty" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("name", ["[a]", "a*", "a?"])
def test_metrics_directory_that_is_a_pattern_is_an_error(
    unset: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """The library would find no file in such a directory, and /metrics would be empty."""
    unset.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path / name))
    with pytest.raises(SystemExit, match="name a directory without"):
        start.metrics_directory()


@pytest.mark.parametrize("name", ["missing", "a file", "/proc"])
def test_heartbeats_are_in_the_temporary_directory_without_shared_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.setattr(start, "_SHARED_MEMORY", str(tmp_path / name))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert start.heartbeat_directory() == str(tmp_path)


def test_missing_temporary_directory_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
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
"""The mount points."""


def unshared(mounts: str) -> tuple[str, ...]:
    """Returns the beginning of a command that runs with its own mounts.

    `mounts` are shell commands that mount. Skips the test if it may not mount.
    """
    if shutil.which("unshare") is None or os.geteuid() != 0:
        pytest.skip("only root may mount")
    if any(Path(place).is_relative_to(at) for place in (ROOT, sys.prefix) for at in HIDDEN):
        pytest.skip("this clone would be hidden by what is mounted")
    command = ("unshare", "--mount", "sh", "-c", f'{mounts}; exec "$@"', "sh")
    if subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("nothing may be mounted here")
    return command


@pytest.mark.parametrize("mounts", MOUNTS.values(), ids=MOUNTS)
def test_service_starts_with_unusable_shared_memory(mounts: str) -> None:
    command = (*unshared(mounts), sys.executable)
    with Service(workers=1, command=command) as service:
        assert service.get("/metrics")[0] == 200


def test_service_starts_if_only_shared_memory_is_writable() -> None:
    """The service starts if /tmp is read-only, as with a read-only root file system without a
    volume.
    """
    mounts = "for at in /tmp /var/tmp; do mount -t tmpfs -o ro none $at; done"
    command = (*unshared(mounts), sys.executable)
    with Service(workers=1, command=command, PYTHONDONTWRITEBYTECODE="1") as service:
        assert service.get("/metrics")[0] == 200


def test_start_without_a_writable_directory_is_one_error() -> None:
    mounts = "for at in /tmp /var/tmp /dev/shm; do mount -t tmpfs -o ro none $at; done"
    again = f"{mounts}; mount --bind {ROOT} {ROOT} && mount -o remount,bind,ro {ROOT}; cd {ROOT}"
    said = error_of_start(unshared(again), PYTHONDONTWRITEBYTECODE="1")
    assert said.startswith("error: no temporary file can be written")
    assert said.count("\n") == 1
