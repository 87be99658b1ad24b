"""Hints and notes about canaries for `use` and `set image --canary`: their budget and template."""

from typing import TYPE_CHECKING

from kubectl_tapp.base.arguments import read_budget
from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.commands.verb_options import Verb

if TYPE_CHECKING:
    from kubectl_tapp.base.observed import Document


def copy_hint(verb: Verb, template: str, ids: list[str] | None, canary: str | None) -> str:
    """Returns a sentence with the command that creates a missing template for these instances.

    Args:
        verb: the running command, with its TApp.
        template: the name of the missing template.
        ids: the instances, as typed by the user; None or empty if `canary` chooses them.
        canary: the value of `--canary`; None stands for one instance.
    """
    named = ",".join(ids) if ids else canary or "1"
    if ids and "," not in named and "-" not in named:
        named += ","  # `--canary` takes a single number without a comma for the size of the canary
    copy = [] if template == "canary" else ["--copy-as", template]
    words = ("image", verb.name, "CONTAINER=IMAGE", "--canary", named, *copy)
    metadata = verb.tapp["metadata"]
    made = shell_command("set", *words, namespace=metadata["namespace"])
    return f"{made} makes a copy with another image for these instances"


def with_canary_budget(
    verb: Verb, edited: "Document", chosen: list[int], share: str | None
) -> "Document":
    """Returns the edit with the budget `share` for canaries, and adds a note for the user.

    A canary is an instance that runs another template than most instances. If `share` is None, the
    edit is unchanged. The note then says how to set a budget, if several canaries would be updated
    at the same time.

    Args:
        verb: the running command, to which the note is added.
        edited: the TApp after the edit.
        chosen: the instance numbers of the canaries.
        share: the budget, as typed by the user, such as `1` or `30%`; None if not given.
    """
    if share is None:
        spec = verb.edits.spec_of(edited)
        off = [id for id in chosen if spec.template_name(id) != spec.rolling_name]
        if len(off) > 1 and not spec.update_strategy.force_update.is_written:
            verb.notes.append(
                "Canaries are updated all at once, because updateStrategy.forceUpdate."
                f"maxUnavailable is 100% by default: {verb.way_to_limit_canaries()}."
            )
        return edited
    verb.notes.append(
        f"updateStrategy.forceUpdate.maxUnavailable is {share} from now on, for later changes too."
    )
    result: Document = verb.edits.with_canary_budget(edited, read_budget(share))
    return result
