"""Removes from a recorded call the values that belong to the machine of the recording."""

from __future__ import annotations

import re
from typing import Any

Json = dict[str, Any]
PATTERNS = {
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}": "00000000-0000-4000-8000-{:012}",
    r"containerd://[0-9a-f]{64}": "containerd://{:064}",
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b": "10.0.0.{}",
}
# Names of these tests, and the names that they have in a real cluster.
STAND_INS = {"e2e.fake/": "example.com/", "e2e-fake": "standard"}
MANAGERS = {
    "tapp-e2e": "kubectl",
    "tapp-e2e-kubelet": "kubelet",
    "tapp-e2e-emulation": "metacontroller",
}


class Scrubber:
    """Replaces equal values by equal values within one record."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._seen: dict[str, dict[str, str]] = {pattern: {} for pattern in PATTERNS}
        self._versions: dict[str, str] = {}

    def record(self, record: Json) -> Json:
        """Returns the scrubbed record.

        The request comes first, so that numbers follow its order.
        """
        request = dict(record["request"])
        controller = request["controller"]
        metadata = {"name": controller["metadata"]["name"]}
        request["controller"] = controller | {"metadata": metadata, "spec": {}}
        request["controller"].pop("status", None)
        return record | {"request": self.value(request), "answer": self.value(record["answer"])}

    def value(self, value: Any, key: str = "") -> Any:
        """Returns the scrubbed form of any JSON value."""
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        if isinstance(value, dict):
            kept = {name: inner for name, inner in value.items() if name != "e2e.fake/namespace"}
            return {self._text(name): self._field(name, inner) for name, inner in kept.items()}
        return self._text(value) if isinstance(value, str) else value

    def _field(self, name: str, value: Any) -> Any:
        if name == "fieldsV1":
            return {}
        if name == "manager":
            return MANAGERS.get(value, value)
        if name == "resourceVersion":
            return self._versions.setdefault(value, str(1001 + len(self._versions)))
        return self.value(value, name)

    def _text(self, text: str) -> str:
        for ours, theirs in ((self._namespace, "shop"), *STAND_INS.items()):
            text = text.replace(ours, theirs)
        text = re.sub(r"kube-api-access-[a-z0-9]{5}", "kube-api-access-abcde", text)
        for pattern, form in PATTERNS.items():
            seen = self._seen[pattern]

            def known(found: re.Match[str], seen: dict[str, str] = seen, form: str = form) -> str:
                return seen.setdefault(found[0], form.format(len(seen) + 1))

            text = re.sub(pattern, known, text)
        return text


def shape(value: Any, path: str = "") -> set[str]:
    """Returns the paths in a request, without varying parts: numbers of items, times, a pod's
    status.
    """
    if isinstance(value, dict):
        found = set()
        for key, inner in value.items():
            keyed = "<child>" if key.startswith("shop/") else key
            if keyed != "managedFields" and not (key == "status" and path.endswith("<child>")):
                found |= shape(inner, f"{path}.{keyed}")
        return found or {path}
    if isinstance(value, list):
        return {found for item in value for found in shape(item, f"{path}[]")} or {path}
    return {path}
