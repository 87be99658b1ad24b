"""The options that verbs share, and the class `Verb` that a verb's function works with.

A verb is a function whose first parameter is a `Verb`. `register_verb` makes it a command.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kubectl_tapp.base.arguments import read_canary_ids, read_ids, template_users
from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.base.shapes import template_shape_error
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.complete import ids as complete_ids
from kubectl_tapp.commands.complete import templates
from kubectl_tapp.commands.help_texts import wait_help
from kubectl_tapp.commands.options import (
    ID_HELP,
    Choices,
    Name,
    keyword,
    option,
    register,
    with_parameters,
)
from tapp.words.ranges import instance_list

if TYPE_CHECKING:
    from types import ModuleType

    from kubectl_tapp.base.observed import Document, Observed
    from tapp.declared.model import TAppSpec
    from tapp.plan import Plan

SomeIds = Annotated[
    list[str], typer.Argument(metavar="ID...", help=ID_HELP, autocompletion=complete_ids)
]
TemplateName = Annotated[
    str, typer.Argument(metavar="TEMPLATE", help="Name of the template.", autocompletion=templates)
]
CanaryOption = Annotated[
    str | None,
    option(
        "--canary",
        metavar="SHARE",
        help="Pick this many instances (3 or 10%) as a canary, or list the numbers of the "
        "instances: 1,4-6. For instance 4 alone, add a comma: `4,`.",
    ),
]
CanaryBudget = Annotated[
    str | None,
    option(
        "--max-unavailable",
        metavar="SHARE",
        help="Update at most this many canaries (1 or 30%) at the same time, by setting "
        "updateStrategy.forceUpdate.maxUnavailable (default: leave the field, which is 100% if "
        "unset).",
    ),
]
CauseOption = Annotated[
    str | None,
    option(metavar="TEXT", help="Cause of the change, for the history (default: the command)."),
]


def template_option(help: str) -> Any:  # noqa: A002 - as typer calls it
    """Returns the option `--template` with a help text, which differs because the meaning of the
    option depends on the command.
    """
    return option("-t", "--template", metavar="NAME", help=help, autocompletion=templates)


@dataclass
class Verb:
    """One run of a verb, such as `kill` or `scale`: the TApp that it edits, and its options.

    The function of the verb computes the edited TApp and passes it to `do`, which plans, confirms
    and writes the edit.
    """

    session: Session  # the cluster, the clock and the output
    seen: "Observed"  # the TApp with its related objects, as it was read
    choices: Choices  # the options that say how the edit is carried out
    notes: list[str] = field(default_factory=list)  # sentences to print before the question
    # True if `--wait` waits for all instances; False if it waits only for the instances that the
    # edit concerns
    waits_for_all: bool = False

    @property
    def name(self) -> str:
        return self.seen.name

    @property
    def tapp(self) -> "Document":
        return self.seen.tapp

    @property
    def edits(self) -> "ModuleType | Any":
        """The module `kubectl_tapp.edit.edits`. It is imported at its first use, because the import
        takes time.
        """
        from kubectl_tapp.edit import edits  # noqa: PLC0415 - it costs start time

        return edits

    @property
    def spec(self) -> "TAppSpec":
        """The spec of the TApp as the service parses it, with all defaults."""
        from kubectl_tapp.edit.edits import spec_of  # noqa: PLC0415 - it costs start time

        return spec_of(self.tapp)

    def ids(self, texts: list[str]) -> list[int]:
        """Returns the instance numbers that these arguments name, such as `0-3,7` or `all`.

        Raises UsageError if an argument is invalid or an instance does not exist.
        """
        return read_ids(texts, self.spec.replicas)

    def plan(self) -> "Plan":
        """Returns the decisions that the service would make now about the TApp as it was read."""
        return self.plan_for(self.seen)

    def plan_for(self, observed: "Observed") -> "Plan":
        """Returns the decisions that the service would make now about another state of the TApp."""
        from kubectl_tapp.decide import decisions  # noqa: PLC0415 - it costs start time

        registration = self.session.cluster.registration(self.seen)
        return decisions.decide_or_fail(observed, registration, self.session.now())

    def choose_instances(
        self, texts: list[str] | None, share: str | None, template: str, base: str | None = None
    ) -> list[int]:
        """Returns the numbers of the instances that the user has named or that are picked for a
        canary.

        A canary is a group of instances that try another template. A note for the user says which
        instances were picked, and why. Raises UsageError unless exactly one of `texts` and `share`
        is given.

        Args:
            texts: the instances as typed by the user; None or empty if `share` is given.
            share: the value of `--canary`: how many instances to pick, or their numbers; None if
                `texts` are given.
            template: the template that the instances will run.
            base: if not None, only instances that run this template now are picked.
        """
        if bool(texts) == (share is not None):
            raise UsageError("name instances, or pick them with --canary")
        if share is None:
            return self.ids(texts or [])
        from kubectl_tapp.edit import canaries  # noqa: PLC0415 - it costs start time

        named = read_canary_ids(share, self.spec.replicas)
        if named is not None:
            self.notes.append(canaries.check_named_instances(self.plan(), template, named, base))
            return named
        picked, why = canaries.pick_instances(self.plan(), template, share, base)
        self.notes.append(why)
        return picked

    def note_others(self, template: str, images: dict[str, str]) -> None:
        """Adds a note about each other template that has a container named in `images`.

        `template` is the template whose images change. The notes say that the other templates keep
        their images.
        """
        spec = self.spec
        for name, ids in sorted(template_users(spec).items()):
            if name == template:
                continue
            body = spec.find_template(name) or {}
            sound = {} if template_shape_error("", body) else body.get("spec") or {}
            own = {each.get("name") for each in sound.get("containers") or []}
            if own & images.keys() or "*" in images:
                what = f"Template {name!r} of {instance_list(ids)} does not change"
                self.notes.append(f"{what}: {self.way_to_change_template(name)}.")

    def way_to_change_template(self, name: str) -> str:
        """Returns a phrase that tells the user how to change another template as well.

        The page overrides this method, because it has fields instead of options.
        """
        return f"--template {name} changes it"

    def way_to_limit_canaries(self) -> str:
        """Returns a phrase that tells the user how to limit the number of canaries that are updated
        together.

        The page overrides this method, because it has fields instead of options.
        """
        return "--max-unavailable 1 updates one by one"

    def note_finished(self, ids: list[int]) -> None:
        """Adds a note that names the finished ones of the given instances, unless none has
        finished.

        Starting a finished instance does not run it again. Source: docs/finished.md.
        """
        statuses = (self.tapp.get("status") or {}).get("statuses") or {}
        ended = [id for id in ids if statuses.get(str(id)) in ("Succ", "Failed")]
        if ended:
            self.notes.append(
                f"Finished: {instance_list(ended)}. To run a finished instance again, kill it and "
                "then start it."
            )

    def with_cause(self, edited: "Document", cause: str | None, command: str) -> "Document":
        """Returns the edited TApp with the cause of the change, which the history shows.

        The cause is the user's text `cause`. If `cause` is None, it is the command line `command`.
        """
        changed: Document = self.edits.with_cause(edited, cause or f"kubectl tapp {command}")
        return changed

    def do(self, edited: "Document") -> None:
        """Shows the plan of the edited TApp, asks for confirmation, writes the TApp, and waits if
        the user has given `--wait`.

        Raises CommandError if the edit is refused or not confirmed.
        """
        from kubectl_tapp.commands.act import carry_out  # noqa: PLC0415 - it costs start time

        carry_out(
            self.session, self.seen, edited, self.choices,
            notes=self.notes, waits_for_all=self.waits_for_all,
        )  # fmt: skip

    def wait_after_write(self, ids: list[int]) -> None:
        """Waits until these instances are done, if the user has given `--wait`.

        The caller has written the change already. After a dry run the method returns at once.
        """
        if self.choices.wait and self.choices.dry_run is None:
            from kubectl_tapp.commands.act import wait_after_write  # noqa: PLC0415 - it costs start time
            from kubectl_tapp.commands.waiting import WaitGoal  # noqa: PLC0415

            wait_after_write(
                self.session,
                WaitGoal(self.name, ids, self.choices.seconds, f"{instance_list(ids)} done"),
                self.tapp,
            )


def register_verb(app: typer.Typer, function: Callable[..., None], name: str | None = None) -> None:
    """Adds a function to the app as a command. The first parameter of the function is a `Verb`.

    The NAME of the TApp comes before the function's own arguments. The options that all verbs share
    come last. `name` is the name of the command; None means the name of the function.
    """
    _, *own = inspect.signature(function, eval_str=True).parameters.values()
    shared = inspect.signature(Choices, eval_str=True).parameters

    def run(session: Session, name: str, **values: Any) -> None:
        choices = Choices(**{each: values.pop(each) for each in shared})
        if choices.yes:
            session.ignore_closed_output()
        function(Verb(session, session.observed(name), choices), **values)

    # `--wait` has another help text for each verb, because verbs wait for different states.
    wait = typer.Option("--wait", help=wait_help(function.__name__))
    common = {**shared, "wait": keyword("wait", Annotated[bool, wait], False)}
    first = [keyword("session", Session), keyword("name", Name)]
    register(app, with_parameters(run, function, [*first, *own, *common.values()]), name)
