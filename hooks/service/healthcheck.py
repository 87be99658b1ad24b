"""The image's health check: exits 0 if the service on this machine answers."""

import http.client
import os
import socket
import sys

from hooks.service import address


def main() -> int:
    """Asks /healthz once; behind TLS (whose client certificate it has not) an open port will do.

    No proxy is asked, whatever HTTP_PROXY says: it is this machine.
    """
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
        print(f"not healthy: {error}", file=sys.stderr)  # noqa: T201 - for `docker inspect`
        sys.exit(1)
