"""`helm test`: creates a TApp with one instance in a new namespace, and deletes both."""

import json
import os
import secrets
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
NAMESPACE, IMAGE = f"tapp-test-{secrets.token_hex(4)}", os.environ["TEST_IMAGE"]
TAPPS = f"/apis/apps.tkestack.io/v1/namespaces/{NAMESPACE}/tapps"
NO_STATUS = (
    "The TApp has no status yet: check that Metacontroller runs and reaches the hook service."
)
TRUSTED = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")


def call(method, path, body=None):
    """Sends a request to the API server and returns the JSON of the response."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    host = f"[{host}]" if ":" in host else host
    token = Path(ACCOUNT, "token").read_text()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    port = os.environ["KUBERNETES_SERVICE_PORT"]
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(f"https://{host}:{port}{path}", data, headers, method=method)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=TRUSTED)
    )
    with opener.open(request, timeout=20) as response:
        return json.load(response)


def main():
    """Returns 0 if the TApp has become Ready, else 1."""
    labels = {"app": "first"}
    container = {"name": "wait", "image": IMAGE}
    container["securityContext"] = {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    container["resources"] = {"requests": {"cpu": "1m", "memory": "8Mi"}}
    container["resources"]["limits"] = {"cpu": "100m", "memory": "32Mi"}
    if command := os.environ.get("TEST_COMMAND"):
        container["command"] = command.split()
    pod = {"containers": [container]}
    pod["securityContext"] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    template = {"metadata": {"labels": labels}, "spec": pod}
    tapp = {"apiVersion": "apps.tkestack.io/v1", "kind": "TApp", "metadata": {"name": "first"}}
    call("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    try:
        call("POST", TAPPS, tapp | {"spec": {"replicas": 1, "template": template}})
        return wait()
    finally:
        call("DELETE", f"{TAPPS}/first")
        call("DELETE", f"/api/v1/namespaces/{NAMESPACE}")


def wait():
    """Prints what the TApp waits for until it is Ready; returns 1 after four minutes."""
    printed, deadline = "", time.monotonic() + 240
    while time.monotonic() < deadline:
        status = call("GET", f"{TAPPS}/first").get("status") or {}
        conditions = {each["type"]: each for each in status.get("conditions", [])}
        ready = conditions.get("Ready")
        message = ready["message"] if ready else NO_STATUS
        if message != printed:
            print(message, flush=True)
        printed = message
        if ready and ready["status"] == "True":
            print("The TApp first with one instance is Ready.")
            return 0
        time.sleep(1)
    print(f"The TApp is not Ready after four minutes: {printed}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HTTPError as error:
        sys.exit(f"The API server refuses a request: {error.code} {error.read().decode()[:500]}")
