"""Image names: do two of them mean the same?

Names are compared in the form that container runtimes report, by the reference rules of
distribution (github.com/distribution/reference): `nginx` is `docker.io/library/nginx:latest`.
"""

import re
from typing import Any, Final

LONGEST: Final = 1_024
"""Characters of an image's reference; no longer one is pulled: there are 255 in a name beside its
host's 253 and port, 128 in a tag, and 135 in a digest."""
_HUB = "docker.io"
_HUBS = (_HUB, "index.docker.io")
# Possessive repeats throughout: none of them has to give back what it has taken.
_LABEL = r"[a-zA-Z0-9]++(?:-++[a-zA-Z0-9]++)*+"
_WORD = r"[a-z0-9]++(?:(?:[._]|__|-++)[a-z0-9]++)*+"
_REFERENCE = re.compile(
    rf"(?:(?P<host>(?:{_LABEL}(?:\.{_LABEL})*+|\[[a-fA-F0-9:]++\])(?::[0-9]++)?)/)?"
    rf"(?P<path>{_WORD}(?:/{_WORD})*+)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}+))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*+(?:[-_+.][A-Za-z][A-Za-z0-9]*+)*+:[0-9a-fA-F]{32,}+)?"
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
_LONGEST = 1_000  # Characters of an image's name that are looked at; a repository has 255 at most
_LONGEST_PATH = (
    255  # Characters of a repository without its registry (RepositoryNameTotalLengthMax)
)
_DIGESTS = re.compile("@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})")
"""The digests that can be checked (github.com/opencontainers/go-digest): other ones are errors."""


def pull_policy(image: Any) -> str:
    """The `imagePullPolicy` of a container that has none (SetDefaults_Container).

    `Always` for the tag `latest`, also where no tag and no digest is written; what is no name at
    all has no tag.
    """
    found = _parsed(image)
    if found is None:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def is_reference(image: Any) -> bool:
    """True if a container runtime takes a text for an image's name."""
    return _parsed(image) is not None


def _parsed(image: Any) -> re.Match[str] | None:
    """An image's name in its parts; None for what is none (ParseNormalizedNamed)."""
    if not isinstance(image, str) or len(image) > _LONGEST or _IDENTIFIER.fullmatch(image):
        return None
    found = _REFERENCE.fullmatch(image)
    if found is None or (found["digest"] and not _DIGESTS.fullmatch(found["digest"])):
        return None
    host, path = found["host"] or "", found["path"]
    if host.startswith("[") and ":" not in host:  # an IPv6 address without a colon is no registry
        return None
    if host and not _is_registry(host):
        host, path = "", f"{host}/{path}"
    if host in ("", *_HUBS) and "/" not in path:
        path = f"library/{path}"
    return found if len(path) <= _LONGEST_PATH else None


def _is_registry(first: str) -> bool:
    """True if the first part of an image's name is a registry (splitDockerDomain)."""
    return "." in first or ":" in first or first == "localhost" or first.lower() != first


def canonical_name(image: str) -> str:
    """An image's name with its registry, its path and its tag or digest written out."""
    name, at, digest = image.partition("@")
    first, slash, rest = name.partition("/")
    registry, path = (first, rest) if slash and _is_registry(first) else (_HUB, name)
    if registry in _HUBS:
        registry = _HUB
    if registry == _HUB and "/" not in path:
        path = f"library/{path}"
    if at:
        path, _, _ = _tagged(path)
        return f"{registry}/{path}@{digest}"
    path, _, tag = _tagged(path)
    return f"{registry}/{path}:{tag or 'latest'}"


def _tagged(path: str) -> tuple[str, str, str]:
    head, colon, tag = path.rpartition(":")
    return (head, colon, tag) if colon and "/" not in tag else (path, "", "")


def names_of(image: str, image_id: str | None = "") -> set[str]:
    """An image's canonical name, and its digest if known: who shares one is the same image."""
    digests = (text.rpartition("@")[2] for text in (image, image_id or ""))
    found = {digest for digest in digests if digest.startswith("sha256:")}
    return {*found, canonical_name(image)} if image else found


def runs_image(wanted: str, image: str | None, image_id: str | None) -> bool:
    """True if a container's status says that it runs the wanted image.

    `image` is one of the names that the runtime knows for what runs; `image_id` is it by digest.
    """
    if not wanted:
        return False
    _, _, digest = wanted.rpartition("@")
    if digest.startswith("sha256:") and image_id and image_id.endswith(digest):
        return True
    return bool(image) and (
        image == wanted or canonical_name(image or "") == canonical_name(wanted)
    )


def pinned(image: str, image_id: str | None, named: str = "") -> tuple[str, ...]:
    """The two names, by digest, of what a container runs: `img:1@sha256:...` and `img@sha256:...`.

    A kubelet restarts a container whose image is spelt in another way, and neither of these can
    ever pull anything else (seen on a real node, whatever the pull policy). The digest is that of
    `image`, the spec's, or else of the status; the tag that of `image`, or else of `named`, the
    template's. Nothing where the digest is not known: no `imageID` yet, a local image (whose
    `imageID` is no repository's), or one that came from another repository than the spec names.
    """
    name, _, digest = image.partition("@")
    repository, _, tag = _tagged(name)
    tag = tag or _tagged(named.partition("@")[0])[2] or "latest"
    if not digest:
        known, _, digest = (image_id or "").removeprefix(_DOCKER).rpartition("@")
        if not digest.startswith("sha256:") or canonical_name(known) != canonical_name(repository):
            return ()
    return f"{repository}:{tag}@{digest}", f"{repository}@{digest}"


_DOCKER = "docker-pullable://"  # The prefix that dockershim wrote before the repository
