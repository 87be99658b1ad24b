"""`helm test`: makes a TApp of one instance in a namespace of its own, and takes it away."""

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
UNANSWERED = "Nobody has answered for the TApp yet: does Metacontroller run, and reach the service?"
TRUSTED = ssl.create_default_context(cafile=f"{ACCOUNT}/ca.crt")


def call(method, path, body=None):
    """An answer of the API server, as JSON."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    host = f"[{host}]" if ":" in host else host
    token = Path(ACCOUNT, "token").read_text()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    port = os.environ["KUBERNETES_SERVICE_PORT"]
    data = json.dumps(body).encode() if body else None
    asked = urllib.request.Request(f"https://{host}:{port}{path}", data, headers, method=method)
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=TRUSTED)
    )
    with opener.open(asked, timeout=20) as answer:
        return json.load(answer)


def main():
    """Returns 0 where the TApp came to be Ready, and went."""
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
    """Says what the TApp waits for, until it is Ready."""
    said, until = "", time.monotonic() + 240
    while time.monotonic() < until:
        status = call("GET", f"{TAPPS}/first").get("status") or {}
        found = {each["type"]: each for each in status.get("conditions", [])}
        ready = found.get("Ready")
        words = ready["message"] if ready else UNANSWERED
        if words != said:
            print(words, flush=True)
        said = words
        if ready and ready["status"] == "True":
            print("A TApp of one instance is Ready.")
            return 0
        time.sleep(1)
    print(f"The TApp is not Ready after four minutes: {said}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except HTTPError as error:
        sys.exit(f"The API server refuses it: {error.code} {error.read().decode()[:500]}")
