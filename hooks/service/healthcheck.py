"""The health check of the container image: exits with 0 if the service responds."""

import http.client
import os
import socket
import sys

from hooks.service import address


def main() -> int:
    """Requests /healthz once and returns the exit code: 0 if the response is 200, else 1.

    If the service uses TLS, the check only opens a connection, because the service may ask for a
    client certificate. The check ignores HTTP_PROXY. Raises OSError or HTTPException if the service
    cannot be reached.
    """
    address.strip_variables()
    host, port = address.reached()
    if os.environ.get("TAPP_TLS_CERT_FILE"):
        with socket.create_connection((host, port), timeout=5):
            return 0
    asked = http.client.HTTPConnection(host, port, timeout=5)
    asked.request("GET", "/healthz")
    return 0 if asked.getresponse().status == 200 else 1  # noqa: PLR2004 - an HTTP status code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, http.client.HTTPException) as error:
        print(f"not healthy: {error}", file=sys.stderr)  # noqa: T201 - `docker inspect` shows this line
        sys.exit(1)
