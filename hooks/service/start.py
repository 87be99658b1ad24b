"""What has to be true of the environment before gunicorn starts.

Each mistake ends the start with SystemExit and one sentence, which names the variable and what it
may be. gunicorn itself would print a traceback, or start and answer with errors.
"""

import logging
import os
import shutil
import ssl
import tempfile
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from hooks.service.account import AccountError, api_server_of
from hooks.service.auth import TokenFileError, Tokens
from hooks.service.settings import Settings

_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - a file in memory: a slow disk stops no heartbeat
_ROOM: Final = 1 << 20  # Bytes that a directory for temporary files must have
_LIMITS: Final = {"ge": "of at least", "gt": "above", "le": "of at most"}
_KINDS: Final[dict[Any, str]] = {bool: "true or false", int: "a whole number", float: "a number"}


def check_settings() -> None:
    """Checks the settings, and the files that they name."""
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
    """Returns the directory in which gunicorn makes the files by which it watches its workers."""
    return _writable(_SHARED_MEMORY, *_temporary())


def metrics_directory() -> str:
    """Returns the directory through which workers share their metrics, and sets its variable.

    If PROMETHEUS_MULTIPROC_DIR is not set or empty, this is a new directory; `remove_metrics`
    removes it. Otherwise the named directory is created if it does not exist.
    """
    name = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    if name:
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
    """Removes the metrics directory if this service has made it."""
    if Path(directory).name.startswith(_OWN):
        shutil.rmtree(directory, ignore_errors=True)


def forget_log_handlers() -> None:
    """Keeps a worker's end from printing tracebacks: nothing is logged after this.

    At the very end Python calls `logging` for each handler that goes. By then its lock, which
    gevent has replaced, fails with a TypeError (https://github.com/gevent/gevent/issues/2148).
    """
    logging.shutdown()
    logging._handlerList.clear()  # type: ignore[attr-defined]


def _sentence(error: Any) -> str:
    name = str(error["loc"][0])
    variable = f"TAPP_{name.upper()}"
    said = error["msg"].removeprefix("Value error, must be ")
    allowed = _allowed(Settings.model_fields[name]) or said
    return f"error: {variable}={str(error['input'])[:50]} is invalid: set {allowed}"


def _allowed(field: FieldInfo) -> str:
    limits = [
        f"{words} {getattr(rule, key)}"
        for rule in field.metadata
        for key, words in _LIMITS.items()
        if hasattr(rule, key)
    ]
    kind = _KINDS.get(field.annotation, "")
    return f"{kind} {' and '.join(limits)}".strip() if kind else ""


def _check_tls() -> None:
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
    # None of tempfile's directories (TMPDIR, /tmp, /var/tmp, the current one) may be writable.
    try:
        return [tempfile.gettempdir()]
    except FileNotFoundError:
        return []


def _writable(*directories: str) -> str:
    """Returns the first directory in which a file can be made, and in which there is room."""
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
    with tempfile.TemporaryFile(dir=directory) as file:
        os.posix_fallocate(file.fileno(), 0, _ROOM)
