"""Image references: comparison, default pull policy, and references by digest.

References are compared in the form that container runtimes report, by the rules of
github.com/distribution/reference: `nginx` stands for `docker.io/library/nginx:latest`.
"""

import re
from typing import Any, Final

# Most characters of a valid reference: a host of 253 with its port, a path of 255, a tag of 128,
# and a digest of 135.
LONGEST: Final = 1_024
_HUB = "docker.io"
_HUBS = (_HUB, "index.docker.io")
_LABEL = r"[a-zA-Z0-9]++(?:-++[a-zA-Z0-9]++)*+"
_WORD = r"[a-z0-9]++(?:(?:[._]|__|-++)[a-z0-9]++)*+"
# Grammar of a reference. The repetitions are possessive (`++`), so that the time stays linear.
_REFERENCE = re.compile(
    rf"(?:(?P<host>(?:{_LABEL}(?:\.{_LABEL})*+|\[[a-fA-F0-9:]++\])(?::[0-9]++)?)/)?"
    rf"(?P<path>{_WORD}(?:/{_WORD})*+)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}+))?"
    r"(?P<digest>@[A-Za-z][A-Za-z0-9]*+(?:[-_+.][A-Za-z][A-Za-z0-9]*+)*+:[0-9a-fA-F]{32,}+)?"
)
_IDENTIFIER = re.compile("[a-f0-9]{64}")
# Most characters of a text that is parsed; a longer text counts as invalid.
_LONGEST = 1_000
# Most characters of a repository without its registry (RepositoryNameTotalLengthMax).
_LONGEST_PATH = 255
# Digests that can be verified; others are errors (github.com/opencontainers/go-digest).
_DIGESTS = re.compile("@(?:sha256:[a-f0-9]{64}|sha384:[a-f0-9]{96}|sha512:[a-f0-9]{128})")


def pull_policy(image: Any) -> str:
    """Returns the `imagePullPolicy` that Kubernetes sets by default for an image reference.

    The policy is `Always` if the tag is `latest`, or if the reference has neither tag nor digest.
    In all other cases the policy is `IfNotPresent` (core/v1, SetDefaults_Container).
    """
    found = _parsed(image)
    if found is None:
        return "IfNotPresent"
    tag = found["tag"] or ("" if found["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"


def is_reference(image: Any) -> bool:
    """Returns True if `image` is a text that a container runtime accepts as an image reference."""
    return _parsed(image) is not None


def _parsed(image: Any) -> re.Match[str] | None:
    """Matches an image reference against its grammar; returns None if the reference is invalid.

    The match has the groups `host`, `path`, `tag` and `digest` (ParseNormalizedNamed).
    """
    if not isinstance(image, str) or len(image) > _LONGEST or _IDENTIFIER.fullmatch(image):
        return None
    found = _REFERENCE.fullmatch(image)
    if found is None or (found["digest"] and not _DIGESTS.fullmatch(found["digest"])):
        return None
    host, path = found["host"] or "", found["path"]
    # Brackets enclose an IPv6 address, which has colons.
    if host.startswith("[") and ":" not in host:
        return None
    if host and not _is_registry(host):
        host, path = "", f"{host}/{path}"
    if host in ("", *_HUBS) and "/" not in path:
        path = f"library/{path}"
    return found if len(path) <= _LONGEST_PATH else None


def _is_registry(first: str) -> bool:
    """Returns True if the part of an image reference before its first slash is a registry.

    The rule is that of splitDockerDomain: a registry has a dot, a colon or an uppercase letter, or
    is `localhost`.
    """
    return "." in first or ":" in first or first == "localhost" or first.lower() != first


def canonical_name(image: str) -> str:
    """Returns an image reference with its registry, its path, and its tag or digest written out.

    For example, `nginx` becomes `docker.io/library/nginx:latest`. A digest takes the place of the
    tag.
    """
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
    """Splits an image path into three texts: the path without the tag, the colon, and the tag.

    Colon and tag are empty if the path has no tag.
    """
    head, colon, tag = path.rpartition(":")
    return (head, colon, tag) if colon and "/" not in tag else (path, "", "")


def names_of(image: str, image_id: str | None = "") -> set[str]:
    """Returns the canonical name and the known digests of an image.

    Two images are the same if their sets have an element in common.

    Args:
        image: the image reference. If it is empty, the set has no name.
        image_id: the `imageID` of a container's status; None or empty if unknown.
    """
    digests = (text.rpartition("@")[2] for text in (image, image_id or ""))
    found = {digest for digest in digests if digest.startswith("sha256:")}
    return {*found, canonical_name(image)} if image else found


def runs_image(wanted: str, image: str | None, image_id: str | None) -> bool:
    """Returns True if the status of a container shows that the container runs an image.

    Args:
        wanted: the reference of the image, from the pod's spec. If it is empty, the result is
            False.
        image: the `image` of the container's status: one of the names that the runtime has for the
            image that runs.
        image_id: the `imageID` of the container's status, with the digest of the image that runs.
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
    """Returns two different references by digest to the image that a container runs.

    The references look like `img:1@sha256:...` and `img@sha256:...`. An update that restarts a
    container in place sets the one that the pod's spec does not have. The kubelet restarts a
    container if the text of its image changes. With a digest, it runs the same image whatever the
    pull policy is (observed on a real node).

    Returns an empty tuple if the digest is unknown. That is so if the status has no `imageID` yet,
    if the image is local, or if the image comes from another repository than the one in the spec.

    Args:
        image: the image reference in the pod's spec. Its repository is used, and its tag and digest
            if it has them.
        image_id: the `imageID` of the container's status. Its digest is used if `image` has none.
        named: the image reference of the container in the template. Its tag is used if `image` has
            none, because an earlier restart may have set `img@sha256:...` in the spec.
    """
    name, _, digest = image.partition("@")
    repository, _, tag = _tagged(name)
    tag = tag or _tagged(named.partition("@")[0])[2] or "latest"
    if not digest:
        known, _, digest = (image_id or "").removeprefix(_DOCKER).rpartition("@")
        if not digest.startswith("sha256:") or canonical_name(known) != canonical_name(repository):
            return ()
    return f"{repository}:{tag}@{digest}", f"{repository}@{digest}"


# Prefix that dockershim wrote before the repository in an `imageID`.
_DOCKER = "docker-pullable://"
