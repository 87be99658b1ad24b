"""Checks the environment before gunicorn starts, and prepares its directories.

Each mistake ends the start with SystemExit and one sentence, which names the variable and its
allowed values. Without these checks gunicorn would print a traceback, or start and then answer
requests with errors.
"""

import glob
import logging
import os
import shutil
import ssl
import tempfile
from pathlib import Path
from typing import Any, Final

from gevent import GreenletExit
from pydantic import ValidationError
from pydantic.fields import FieldInfo

from hooks.service.account import AccountError, api_server_of
from hooks.service.auth import TokenFileError, Tokens
from hooks.service.settings import Settings

# A file in memory, so that a slow disk delays no heartbeat.
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - the directory is checked before it is used
_ROOM: Final = 1 << 20  # Free bytes that a directory for temporary files must have
_LIMITS: Final = {"ge": "of at least", "gt": "above", "le": "of at most"}
_KINDS: Final[dict[Any, str]] = {bool: "true or false", int: "a whole number", float: "a number"}


def check_settings() -> None:
    """Checks the settings and the files that the settings name.

    Raises SystemExit if a setting is invalid, or if a file cannot be used.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        raise SystemExit("\n".join(map(_sentence, error.errors()))) from None
    try:
        if settings.auth_token_file:
            Tokens(settings.auth_token_file)
        for component in ("events", "resize"):
            if getattr(settings, component):
                api_server_of(settings.events_account, component)
    except TokenFileError as error:
        raise SystemExit(f"error: TAPP_AUTH_TOKEN_FILE cannot be used: {error}") from None
    except AccountError as error:
        raise SystemExit(f"error: {error}") from None
    _check_tls()


def heartbeat_directory() -> str:
    """Returns the directory for the files with which gunicorn checks that its workers are alive.

    Raises SystemExit if no temporary directory is writable.
    """
    return _writable(_SHARED_MEMORY, *_temporary())


def metrics_directory() -> str:
    """Returns the directory through which the workers share their metrics.

    If PROMETHEUS_MULTIPROC_DIR names a directory, creates the directory if it does not exist.
    Otherwise creates a temporary directory, which `remove_metrics` removes, and sets the variable.
    Raises SystemExit if the directory cannot be used.
    """
    name = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if name:
        # The library finds the files of the workers by a pattern that begins with this path.
        if glob.escape(name) != name:
            raise SystemExit(
                f"error: PROMETHEUS_MULTIPROC_DIR={name[:200]} cannot be used: name a directory "
                "without *, ? and ["
            )
        try:
            Path(name).mkdir(parents=True, exist_ok=True)
            _try(name)
        except OSError as error:
            raise SystemExit(
                f"error: PROMETHEUS_MULTIPROC_DIR={name[:200]} cannot be used "
                f"({error.strerror}): name a directory that the service may create or write into, "
                "or leave the variable empty"
            ) from None
        return name
    made = tempfile.mkdtemp(prefix=_OWN, dir=_writable(*_temporary(), _SHARED_MEMORY))
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = made
    return made


_OWN: Final = "tapp-metrics-"


def remove_metrics(directory: str) -> None:
    """Removes the metrics directory if this service has created it."""
    if Path(directory).name.startswith(_OWN):
        shutil.rmtree(directory, ignore_errors=True)


def forget_log_handlers() -> None:
    """Closes all log handlers, so that a worker ends without tracebacks. Nothing is logged later.

    At exit, Python calls `logging` for each handler that still exists. By then the lock of
    `logging`, which gevent has replaced, raises a TypeError
    (https://github.com/gevent/gevent/issues/2148).
    """
    logging.shutdown()
    logging._handlerList.clear()  # type: ignore[attr-defined]


def ends_no_connection(record: logging.LogRecord) -> bool:
    """Returns False for a log record about a connection that ends because its worker stops.

    A worker that stops ends idle connections with GreenletExit after `graceful_timeout`. gunicorn
    logs that as an error in a request, with a traceback.
    """
    error = record.exc_info[1] if record.exc_info else None
    return not isinstance(error, GreenletExit)


def _sentence(error: Any) -> str:
    """Returns a sentence about an invalid setting: the variable, its value, and the allowed values.

    `error` is an entry of pydantic's `ValidationError.errors`.
    """
    name = str(error["loc"][0])
    variable = f"TAPP_{name.upper()}"
    said = error["msg"].removeprefix("Value error, must be ")
    allowed = _allowed(Settings.model_fields[name]) or said
    return f"error: {variable}={str(error['input'])[:50]} is invalid: set {allowed}"


def _allowed(field: FieldInfo) -> str:
    """Returns the allowed values of a setting in words; empty if its type says too little."""
    limits = [
        f"{words} {getattr(rule, key)}"
        for rule in field.metadata
        for key, words in _LIMITS.items()
        if hasattr(rule, key)
    ]
    kind = _KINDS.get(field.annotation, "")
    return f"{kind} {' and '.join(limits)}".strip() if kind else ""


def _check_tls() -> None:
    """Checks the files of the TLS settings.

    Raises SystemExit if they cannot be used.
    """
    names = [f"TAPP_TLS_{part}_FILE" for part in ("CERT", "KEY", "CLIENT_CA")]
    cert, key, authority = (os.environ.get(name) or None for name in names)
    if not cert:
        for name, value in zip(names[1:], (key, authority), strict=True):
            if value:
                raise SystemExit(f"error: {name} is set without {names[0]}: set both, or neither")
        return
    try:
        ssl.create_default_context(cafile=authority).load_cert_chain(cert, key, lambda: "")
    except OSError as error:
        files = ", ".join(
            f"{name}={value}"
            for name, value in zip(names, (cert, key, authority), strict=True)
            if value
        )
        raise SystemExit(
            f"error: TLS cannot be served with {files} ({error.strerror or error}): name a "
            "certificate, its unencrypted key and a CA, as PEM files"
        ) from None


def _temporary() -> list[str]:
    """Returns the directory for temporary files in a list; empty if none is writable."""
    # tempfile raises an error if none of TMPDIR, /tmp, /var/tmp and the current directory is
    # writable.
    try:
        return [tempfile.gettempdir()]
    except FileNotFoundError:
        return []


def _writable(*directories: str) -> str:
    """Returns the first directory in which a file of `_ROOM` bytes can be created.

    Raises SystemExit if there is none.
    """
    for directory in directories:
        try:
            _try(directory)
        except OSError:
            continue
        return directory
    raise SystemExit(
        f"error: no temporary file can be written: {_SHARED_MEMORY}, /tmp and TMPDIR are missing, "
        "read-only or full; mount a writable directory at /tmp"
    )


def _try(directory: str) -> None:
    """Creates a file of `_ROOM` bytes in a directory, and removes it again.

    Raises OSError if that is not possible.
    """
    with tempfile.TemporaryFile(dir=directory) as file:
        os.posix_fallocate(file.fileno(), 0, _ROOM)
