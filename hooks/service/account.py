"""The service account that the kubelet mounts into the pod of this service."""

import os
from collections.abc import Mapping
from pathlib import Path


class AccountError(Exception):
    """The service account cannot be used. The message names the component that installs it."""


def api_server_of(
    account: Path, component: str, environ: Mapping[str, str] = os.environ
) -> tuple[str, str]:
    """Returns the host and the port of the API server.

    Raises AccountError if the environment has no host or port, or if a file of the account is
    missing or empty.

    Args:
        account: the directory of the service account, with the files `token` and `ca.crt`.
        component: the component that needs the account: `events` or `resize`. The error names it.
        environ: the environment variables.
    """
    try:
        if not all((account / name).read_text().strip() for name in ("token", "ca.crt")):
            raise OSError("an empty file")
        return environ["KUBERNETES_SERVICE_HOST"], environ["KUBERNETES_SERVICE_PORT"]
    except (KeyError, OSError, UnicodeDecodeError) as error:
        needs = f"TAPP_{component.upper()} needs a service account in {account}: {error}."
        install = f"Install metacontroller/components/{component}."
        raise AccountError(f"{needs} {install}") from None
