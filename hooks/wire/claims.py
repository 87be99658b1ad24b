"""Reads the claims of a request, each with the response that leaves it unchanged.

If Metacontroller updates claims (`InPlace`), this response is a projection of the whole claim. It
depends on nothing but the claim, so it is computed once for each text of a claim and then kept in
the memo, as for pods (`memo.py`).
"""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw

from hooks.wire.decode import by_name, decoded
from hooks.wire.memo import Cached, ObservedClaim, claim_bytes
from tapp.kube.objects import ClaimObject
from tapp.storage.unchanged_claims import Document, kept_claim, unchanged_claim
from tapp.words.kinds import CLAIM

_decode_claim = msgspec.json.Decoder(ClaimObject).decode


def read_claims(
    texts: Mapping[str, Raw],
    namespace: str,
    cached: Mapping[str, Cached[ObservedClaim]],
    *,
    growing: bool,
) -> dict[str, Cached[ObservedClaim]]:
    """Returns the claims of a request by name.

    Raises WireError if a claim cannot be read, or if its name or namespace is wrong.

    Args:
        texts: the JSON of the claims, by their keys in the request.
        namespace: the namespace of the TApp.
        cached: the claims in the memo, by name. All were read with `growing`.
        growing: True if Metacontroller updates claims (`InPlace`).
    """
    answer = unchanged_claim if growing else kept_claim
    by_text = {(item.length, item.hash): item for item in cached.values()} if growing else {}

    def read(raw: Raw, path: str) -> tuple[str, str | None, Cached[ObservedClaim]]:
        text = bytes(raw)
        item = by_text.get((len(text), hash(text)))
        if item is None:
            claim = decoded(lambda read: _observe(read, answer), text, path)
            item = Cached(text, claim, claim_bytes(text))
        metadata = item.value.claim.metadata
        return metadata.name, metadata.namespace, item

    return by_name(CLAIM, texts, namespace, read)


def _observe(text: bytes | Raw, answer: Callable[[ClaimObject], Document]) -> ObservedClaim:
    """Reads a claim from its JSON; `answer` builds the response that leaves the claim unchanged."""
    claim: ClaimObject = _decode_claim(text)
    # A copy, because msgspec's encoder leaves room for half as much again behind its result.
    return ObservedClaim(claim, Raw(bytes(memoryview(msgspec.json.encode(answer(claim))))))
