"""The claims of a request, and the answers that leave them alone.

Where Metacontroller applies claims (`InPlace`) such an answer takes a look at all of the claim. It
is remembered by the claim's text, as pods are: most claims never change.
"""

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from hooks.wire.decode import CLAIMS, check_identity, child_path, decoded, refuse_twice
from hooks.wire.memo import Known
from hooks.wire.weight import fitted
from tapp.answer.claim_answers import Document, kept_claim, unchanged_claim
from tapp.kube.objects import ClaimObject

_decode_claim = msgspec.json.Decoder(ClaimObject).decode


class Claims:
    """All claims of a request.

    Attributes:
        by_name: name -> claim.
        unchanged_answers: key in the request -> the answer that leaves the claim alone; none where
            Metacontroller never writes a claim, whatever is answered.
        read: how many of these answers had to be made.
    """

    def __init__(
        self,
        texts: Mapping[str, Raw],
        namespace: str,
        *,
        applied: bool,
        recalled: Mapping[str, Known[Raw]],
    ) -> None:
        """Reads the claims.

        Args:
            texts: key in the request -> JSON.
            namespace: where they have to be.
            applied: whether Metacontroller applies what is answered.
            recalled: `unchanged_answers` of an earlier request.

        Raises:
            WireError: one has no name, the name of another, or cannot be read.
        """
        self.by_name: dict[str, ClaimObject] = {}
        self.unchanged_answers: dict[str, Known[Raw]] = {}
        self.read = 0
        self._answers: dict[str, Raw] = {}
        for key, raw in texts.items():
            path = child_path(CLAIMS, key)
            claim: ClaimObject = decoded(_decode_claim, raw, path)
            name = claim.metadata.name
            check_identity(path, name, claim.metadata.namespace, namespace)
            if name in self.by_name:
                refuse_twice(path, name)
            self.by_name[name] = claim
            if not applied:
                continue
            text, known = bytes(raw), recalled.get(key)
            if known is None or not known.is_of(text):
                known, self.read = Known(text, decoded(_unchanged_answer, raw, path)), self.read + 1
            self.unchanged_answers[key] = known
            self._answers[name] = known.value

    def kept(self, claim: ClaimObject) -> Document | Raw:
        """The answer to a claim that stays as it is."""
        return self._answers.get(claim.metadata.name) or kept_claim(claim)


def _unchanged_answer(text: bytes | Raw) -> Raw:
    return fitted(msgspec.json.encode(unchanged_claim(_decode_claim(text))))
