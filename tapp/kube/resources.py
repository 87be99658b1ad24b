"""What a container asks for, as far as two spellings of it mean the same."""

from typing import Any

from tapp.kube.canonical import comparable


def asked_for(resources: Any) -> Any:
    """A container's `resources` in the one form of all that mean the same; {} for none.

    What has a limit and no request asks for the limit (core/v1, SetDefaults_Pod), so a pod has
    requests that its template need not name.
    """
    found = comparable({"resources": resources}).get("resources") or {}
    limits = found.get("limits") if isinstance(found, dict) else None
    if not isinstance(limits, dict):
        return found
    requests = found.get("requests")
    return {**found, "requests": {**limits, **(requests if isinstance(requests, dict) else {})}}
