"""What `use` and `set image --canary` say and offer about canaries: a budget, and a template."""

from typing import TYPE_CHECKING

from kubectl_tapp.base.arguments import read_budget
from kubectl_tapp.base.hints import hint
from kubectl_tapp.commands.verb_options import Verb

if TYPE_CHECKING:
    from kubectl_tapp.base.observed import Document


def making(verb: Verb, template: str, ids: list[str] | None, canary: str | None) -> str:
    """Says which command makes a template that is not there, for the same instances."""
    named = ",".join(ids) if ids else canary or "1"
    if ids and "," not in named and "-" not in named:
        named += ","  # without a comma it would be a share
    copy = [] if template == "canary" else ["--copy-as", template]
    words = ("image", verb.name, "CONTAINER=IMAGE", "--canary", named, *copy)
    metadata = verb.tapp["metadata"]
    made = hint("set", *words, namespace=metadata["namespace"])
    return f"{made} makes a copy with another image for these instances"


def within(verb: Verb, edited: "Document", chosen: list[int], share: str | None) -> "Document":
    """With a budget for instances off the rolling template; it is offered if they have none."""
    if share is None:
        spec = verb.edits.spec_of(edited)
        off = [id for id in chosen if spec.template_name(id) != spec.rolling_name]
        if len(off) > 1 and not spec.update_strategy.force_update.is_written:
            verb.notes.append(
                "Canaries are updated all at once, because updateStrategy.forceUpdate."
                "maxUnavailable is 100% by default: --max-unavailable 1 updates one by one."
            )
        return edited
    verb.notes.append(
        f"updateStrategy.forceUpdate.maxUnavailable is {share} from now on, for later changes too."
    )
    result: Document = verb.edits.forced(edited, read_budget(share))
    return result
