"""Why an edit of claim templates reaches nobody who is there: claims that exist only ever grow."""

from collections.abc import Iterator

from kubectl_tapp.base.observed import Document
from kubectl_tapp.forecast.templates import read_spec
from tapp.kube.canonical import comparable, nano
from tapp.storage.claims import claim_templates

Templates = dict[str, Document]


def unreached(before: Document, after: Document) -> tuple[str, ...]:
    """A sentence for each claim template that changes for others than those that are there.

    Growth is left out: what becomes of that, the decisions say.

    Args:
        before: the TApp as it is; one without a uid is not there yet.
        after: the edited one.
    """
    old, new = read_spec(before), read_spec(after)
    if not before["metadata"].get("uid") or old is None or new is None:
        return ()
    return tuple(_sentences(claim_templates(old), claim_templates(new)))


def _sentences(old: Templates, new: Templates) -> Iterator[str]:
    for name in sorted(new.keys() - old.keys()):
        yield (
            f"claim template {name!r} is new: volumes of a pod never change, so instances get "
            "theirs with their next pod (`kubectl tapp restart` makes new ones)"
        )
    for name in sorted(old.keys() - new.keys()):
        yield (
            f"claim template {name!r} goes: its claims stay, and pods that there are go on using "
            "them until they are made anew"
        )
    for name in sorted(old.keys() & new.keys()):
        before, after = (comparable(each[name]["spec"]) for each in (old, new))
        sizes = [_storage(each[name]) for each in (old, new)]
        if None not in sizes and (nano(str(sizes[1])) or 0) < (nano(str(sizes[0])) or 0):
            yield (
                f"claim template {name!r} asks for {sizes[1]} instead of {sizes[0]}: claims never "
                "shrink; those that there are stay as they are, new ones get the new size"
            )
        kept = sorted(
            key
            for key in (before.keys() | after.keys()) - {"resources"}
            if before.get(key) != after.get(key)
        )
        if kept:
            yield (
                f"claim template {name!r} changes in {', '.join(kept)}: claims that there are keep "
                "what they have, new ones get it"
            )


def _storage(template: Document) -> str | None:
    size = template["spec"]
    for key in ("resources", "requests", "storage"):
        size = size.get(key) if isinstance(size, dict) else None
    return str(size) if isinstance(size, str | int | float) and nano(str(size)) else None
