"""The claims of a request, and the answers that leave them alone."""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from hooks.wire.decode import CLAIMS, check_identity, child_path, decoded, refuse_twice
from tapp.answer.claim_answers import Document, kept_claim, unchanged_claim
from tapp.kube.objects import ClaimObject

_decode_claim = msgspec.json.Decoder(ClaimObject).decode


class Claims:
    """All claims of a request.

    Attributes:
        by_name: name -> claim.
    """

    def __init__(self, texts: Mapping[str, Raw], namespace: str, *, applied: bool) -> None:
        """Reads the claims.

        Args:
            texts: key in the request -> JSON.
            namespace: where they have to be.
            applied: whether Metacontroller applies what is answered; else it never writes a claim
                that exists.

        Raises:
            WireError: one has no name, the name of another, or cannot be read.
        """
        self.by_name: dict[str, ClaimObject] = {}
        self._answers: dict[str, Document] = {}
        answer = unchanged_claim if applied else kept_claim

        def read(text: bytes | Raw) -> tuple[ClaimObject, Document]:
            claim: ClaimObject = _decode_claim(text)
            return claim, answer(claim)

        for key, raw in texts.items():
            path = child_path(CLAIMS, key)
            claim, kept = decoded(read, raw, path)
            name = claim.metadata.name
            check_identity(path, name, claim.metadata.namespace, namespace)
            if name in self.by_name:
                refuse_twice(path, name)
            self.by_name[name], self._answers[name] = claim, kept

    def kept(self, claim: ClaimObject) -> Document:
        """The answer to a claim that stays as it is."""
        return self._answers[claim.metadata.name]
