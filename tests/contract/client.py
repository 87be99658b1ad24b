"""Sends requests to a running service over HTTP: a sync request (`REQUEST`) and a function that
sends it.
"""

import json
import urllib.request

REQUEST = {
    "parent": {
        "apiVersion": "apps.tkestack.io/v1",
        "kind": "TApp",
        "metadata": {"name": "web", "namespace": "shop", "uid": "u-1"},
        "spec": {
            "replicas": 2,
            "template": {"spec": {"containers": [{"name": "a", "image": "a"}]}},
        },
    },
    "children": {"Pod.v1": {}, "PersistentVolumeClaim.v1": {}},
    "related": {},
    "finalizing": False,
}


def fetch(url: str, body: object = None) -> bytes:
    """Returns the body of the response from `url`.

    A `body` is sent as JSON with POST; None sends a GET request.
    """
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        read: bytes = answer.read()
    return read
