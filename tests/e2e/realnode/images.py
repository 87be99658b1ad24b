"""Builds images without a registry: OCI layouts from one static busybox.

All images share one layer. The images differ in their environment variables, which control the
script. A pod may override it, so a behavior comes with an image or with a template.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = "e2e.local"
"""The registry in the images' names. Pulls from this host ask the registry of the test."""
PAUSE = f"{HOST}/pause:1"
SERVING = "run/serving"
"""A file that exists while the process in the container serves."""
STARTED = "run/started"
"""A file that exists as soon as the process in the container has started."""
HTTP_PATH = "/cgi-bin/version"
APP = """#!/bin/sh
# START_SECONDS until it serves, BOOT_SECONDS until it says that it has started; EXIT_AFTER seconds
# it ends with EXIT_CODE; EAT=1 takes memory without end; IGNORE_TERM=1, or TERM_SECONDS to end in;
# DATA is a directory to leave a mark in. PORT is where it serves HTTP, each request for
# REPLY_SECONDS; it ends when these are done.
rm -f /run/serving
{ sleep "${BOOT_SECONDS:-0}"; touch /run/started; } &
finish() { kill "$server"; while pidof httpd > /dev/null; do sleep 0.05; done; }
end() {
  rm -f /run/serving
  [ -z "$server" ] || finish
  sleep "${TERM_SECONDS:-0}"
  exit "${TERM_CODE:-0}"
}
if [ -n "$IGNORE_TERM" ]; then trap "" TERM; else trap end TERM; fi
nap() { sleep "$1" & wait $!; }
echo "image $VERSION"
[ -z "$DATA" ] || echo "$VERSION" >> "$DATA/starts"
[ -z "$EAT" ] || exec tail /dev/zero
nap "${START_SECONDS:-0}"
[ -z "$PORT" ] || { httpd -f -p "$PORT" -h /www & server=$!; }
touch /run/serving
[ -z "$EXIT_AFTER" ] || { nap "$EXIT_AFTER"; rm -f /run/serving; exit "${EXIT_CODE:-0}"; }
while :; do nap 3600; done
"""
VERSION = """#!/bin/sh
sleep "${REPLY_SECONDS:-0.2}"
printf 'Content-Type: text/plain\\r\\n\\r\\n%s\\n' "$VERSION"
"""
APPLETS = (
    *("sh", "sleep", "touch", "rm", "cat", "test", "tail", "echo", "true", "false", "kill"),
    *("httpd", "pidof"),
)
LAYER_TYPE = "application/vnd.oci.image.layer.v1.tar+gzip"
CONFIG_TYPE = "application/vnd.oci.image.config.v1+json"
MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
INDEX_TYPE = "application/vnd.oci.image.index.v1+json"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}

BEHAVIOURS: dict[str, dict[str, str]] = {
    "1": {},
    "2": {},
    "3": {},
    "slow": {"START_SECONDS": "4"},
    "late": {"BOOT_SECONDS": "12"},
    "dead": {"START_SECONDS": "100000"},
    "crash": {"EXIT_AFTER": "0.3", "EXIT_CODE": "3"},
    "crash-late": {"EXIT_AFTER": "3", "EXIT_CODE": "3"},
    "ends": {"EXIT_AFTER": "1"},
    "oom": {"EAT": "1"},
}
"""For each tag, the environment of an image that the node has from the beginning."""


def app(tag: str) -> str:
    """Returns the name of an image of the application."""
    return f"{HOST}/app:{tag}"


def content(value: Any) -> bytes:
    """Returns a JSON document as a blob."""
    return json.dumps(value, sort_keys=True).encode()


def sha256(blob: bytes) -> str:
    """Returns the digest of a blob."""
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def entry(name: str, kind: bytes = tarfile.REGTYPE, mode: int = 0o755) -> tarfile.TarInfo:
    """Returns a tar entry without a time, so that equal contents give equal archives."""
    made = tarfile.TarInfo(name)
    made.type, made.mode = kind, mode
    return made


def layer(busybox: Path) -> bytes:
    """Returns the only file system layer: busybox, its commands, and the script."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("bin", "run", "tmp", "etc", "data", "www", "www/cgi-bin"):
            tar.addfile(entry(name, tarfile.DIRTYPE))
        files = {
            "bin/busybox": busybox.read_bytes(),
            "bin/app": APP.encode(),
            f"www{HTTP_PATH}": VERSION.encode(),
        }
        for name, data in files.items():
            made = entry(name)
            made.size = len(data)
            tar.addfile(made, io.BytesIO(data))
        for name in APPLETS:
            made = entry(f"bin/{name}", tarfile.SYMTYPE)
            made.linkname = "busybox"
            tar.addfile(made)
    return out.getvalue()


def ballast(megabytes: int) -> bytes:
    """Returns a layer of incompressible bytes; empty for 0."""
    if not megabytes:
        return b""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        made = entry("data/ballast")
        made.size = megabytes << 20
        tar.addfile(made, io.BytesIO(os.urandom(made.size)))
    return out.getvalue()


@dataclass
class Images:
    """Blobs by digest, and the names of manifests."""

    busybox: Path
    machine: str
    blobs: dict[str, bytes] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """The digest of the manifest for each name."""

    def __post_init__(self) -> None:
        raw = layer(self.busybox)
        self._diff = sha256(raw)
        self._layer = self._put(gzip.compress(raw, 1, mtime=0))
        # The user of the real pause image.
        self.add(PAUSE, {"VERSION": "pause"}, user="65535:65535")
        for tag, environment in BEHAVIOURS.items():
            self.add(app(tag), {"VERSION": tag, **environment})
        self.names[app("2-again")] = self.names["mirror.local/app:2"] = self.names[app("2")]

    def add(
        self, name: str, environment: Mapping[str, str], megabytes: int = 0, user: str = ""
    ) -> None:
        """Adds an image that runs the script with this environment, enlarged by `megabytes`."""
        weight = ballast(megabytes)
        layers = [self._layer, *([self._put(gzip.compress(weight, 1, mtime=0))] if weight else [])]
        paths = {"PATH": "/bin"} | dict(environment)
        config = {
            "architecture": ARCHITECTURES.get(self.machine, self.machine),
            "os": "linux",
            "config": {
                "Env": [f"{key}={value}" for key, value in sorted(paths.items())],
                "Entrypoint": ["/bin/app"],
                **({"User": user} if user else {}),
            },
            "rootfs": {
                "type": "layers",
                "diff_ids": [self._diff, *([sha256(weight)] if weight else [])],
            },
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": self._describe(CONFIG_TYPE, self._put(content(config))),
            "layers": [self._describe(LAYER_TYPE, layer) for layer in layers],
        }
        self.names[name] = self._put(content(manifest))

    def archive(self, target: Path) -> None:
        """Writes all images into one tar in OCI layout, which `ctr images import` can read."""
        manifests = [
            self._describe(MANIFEST_TYPE, digest)
            | {"annotations": {"io.containerd.image.name": name}}
            for name, digest in sorted(self.names.items())
        ]
        index = {"schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests}
        files = {
            "oci-layout": content({"imageLayoutVersion": "1.0.0"}),
            "index.json": content(index),
        }
        files |= {f"blobs/{key.replace(':', '/')}": blob for key, blob in self.blobs.items()}
        with tarfile.open(target, "w") as tar:
            for name, blob in files.items():
                made = entry(name, mode=0o644)
                made.size = len(blob)
                tar.addfile(made, io.BytesIO(blob))

    def _put(self, blob: bytes) -> str:
        digest = sha256(blob)
        self.blobs[digest] = blob
        return digest

    def _describe(self, kind: str, digest: str) -> dict[str, Any]:
        return {"mediaType": kind, "digest": digest, "size": len(self.blobs[digest])}
