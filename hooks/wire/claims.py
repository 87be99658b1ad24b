"""The claims of a request, and the answers that leave them alone."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from hooks.wire.decode import by_name, decoded
from tapp.answer.claim_answers import Document, kept_claim, unchanged_claim
from tapp.kube.objects import ClaimObject
from tapp.words.kinds import CLAIM

_decode_claim = msgspec.json.Decoder(ClaimObject).decode


class Claims:
    """All claims of a request.

    Attributes:
        by_name: name -> claim.
    """

    def __init__(self, texts: Mapping[str, Raw], namespace: str, *, applied: bool) -> None:
        """Reads the claims, key in the request -> JSON; each has to be in the namespace.

        Without `applied` Metacontroller never writes a claim that exists.

        Raises WireError: one has no name, the name of another, or cannot be read.
        """
        answer = unchanged_claim if applied else kept_claim

        def answered(text: bytes | Raw) -> tuple[ClaimObject, Document]:
            claim: ClaimObject = _decode_claim(text)
            return claim, answer(claim)

        def read(raw: Raw, path: str) -> tuple[str, str | None, tuple[ClaimObject, Document]]:
            found = decoded(answered, raw, path)
            return found[0].metadata.name, found[0].metadata.namespace, found

        found = by_name(CLAIM, texts, namespace, read)
        self.by_name = {name: claim for name, (claim, _) in found.items()}
        self._answers = {name: kept for name, (_, kept) in found.items()}

    def kept(self, claim: ClaimObject) -> Document:
        """The answer to a claim that stays as it is."""
        return self._answers[claim.metadata.name]
