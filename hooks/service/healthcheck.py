"""The image's health check: exits 0 if the service on this machine answers."""

import os
import socket
import sys
import urllib.error
import urllib.request


def main() -> int:
    """Asks /healthz once; behind TLS (whose client certificate it has not) an open port will do."""
    port = os.environ.get("PORT", "8080")
    if os.environ.get("TAPP_TLS_CERT_FILE"):
        with socket.create_connection(("127.0.0.1", int(port)), timeout=5):
            return 0
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5) as answer:
        return 0 if answer.status == 200 else 1  # noqa: PLR2004 - an HTTP status code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, urllib.error.URLError) as error:
        print(f"not healthy: {error}", file=sys.stderr)  # noqa: T201 - for `docker inspect`
        sys.exit(1)
