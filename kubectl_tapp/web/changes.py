"""Changes from the page: each change runs a verb of the plugin, first as a plan and then with the
write.

`Changes.plan` runs a verb's function without writing and returns the plan with a key. `Changes.do`
carries out the plan of a key, once.
"""

import inspect
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from kubectl_tapp.base.arguments import read_budget, read_partition
from kubectl_tapp.base.errors import CommandError, Exit, UsageError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands import hold, restart, verbs
from kubectl_tapp.commands.proposal import Proposal
from kubectl_tapp.commands.verb_options import Verb
from kubectl_tapp.live.page_words import in_page_words
from kubectl_tapp.show.planned import plan_model

# Number of plans that are remembered; if a plan is older, the page has to plan the change again
_MAX_PLANS = 32
# Seconds that a response waits for a change; if the change takes longer, the timeline shows its
# result
_MAX_WAIT = 8.0


def partition(verb: Verb, to: str) -> None:
    """Sets the partition: how many instances keep their revision during a rollout. `to` is typed on
    the page.

    Only instances that run the rolling template count. `updateStrategy.template` names this
    template.
    """
    verb.do(verb.edits.with_partition(verb.tapp, read_partition(to)))


def budget(verb: Verb, to: str, *, others: bool = False) -> None:
    """Sets the budget: how many instances may be unavailable at a time. `to` is typed on the page.

    If `others` is False, the function sets the budget of the rolling template, which
    `updateStrategy.template` names. If `others` is True, it sets the budget of all other templates.
    """
    edit = verb.edits.with_canary_budget if others else verb.edits.with_budget
    verb.do(edit(verb.tapp, read_budget(to, "--to")))


OFFERED: Mapping[str, Callable[..., None]] = {
    "image": verbs.image, "replicas": verbs.scale, "kill": verbs.kill, "start": verbs.start,
    "template": verbs.use, "partition": partition, "advance": verbs.advance, "pause": verbs.pause,
    "resume": verbs.resume, "restart": restart.restart, "hold": hold.hold,
    "release": hold.release, "adopt": verbs.adopt, "promote": verbs.promote, "abort": verbs.abort,
    "rollback": verbs.rollback, "retry": verbs.retry, "budget": budget,
}  # fmt: skip
"""Name of a change that the page offers -> the function that carries out the change with a
`Verb`.
"""


class Changes:
    """Plans the changes that a user asks for on the page, and carries out each plan once."""

    def __init__(self, session: Session, tell: Callable[[str, str, str], None]) -> None:
        """Stores the session; no change has been planned yet.

        `tell` adds a line to the timeline of a TApp; its arguments are namespace, name and text.
        """
        self._session, self._add_to_timeline = session, tell
        self._planned: dict[str, tuple[str, str, str, Proposal]] = {}

    def plan(self, namespace: str, name: str, change: str, values: object) -> dict[str, Any]:
        """Plans a change of a TApp, and returns the plan, its notes, and the key to carry it out.

        The plan is None for a change that does not edit the TApp, such as a hold. The key is empty
        if there is nothing to do. Raises CommandError if the change is not possible.

        Args:
            namespace: the namespace of the TApp.
            name: the name of the TApp.
            change: the name of the change, a key of `OFFERED`.
            values: the values of the dialog, by the names of the parameters of the change's
                function.
        """
        session = self._session.with_options(namespace=namespace)
        with _errors_in_page_words():
            verb, given = OFFERED.get(change, _unknown), _converted(change, values)
            found = Proposal(session, name, verb, given, must_match=change == "adopt")
        key = secrets.token_urlsafe(16) if found.can_be_done else ""
        if key:
            self._planned[key] = namespace, name, change, found
            for old in [*self._planned][:-_MAX_PLANS]:
                self._planned.pop(old, None)
        plan = None if found.forecast is None else plan_model(found.forecast)
        # These parts contain the author's own texts, in which no words may be replaced.
        own = {"changes", "pictures"}
        if plan is not None:
            plan = {key: each if key in own else in_page_words(each) for key, each in plan.items()}
        return {"plan": plan, "text": in_page_words(found.text), "key": key}

    def do(self, key: str) -> dict[str, Any]:
        """Carries out the plan with this key, and returns the text of its output.

        If the change takes longer than `_MAX_WAIT`, `going` is True in the result, and the change
        continues. Raises CommandError if the change fails. If its exit code is `Exit.CHANGED`, the
        objects have changed, and a new plan is needed.
        """
        # The plan is removed before it is carried out, so that a second click cannot carry it out
        # again.
        planned = self._planned.pop(key, None)
        if planned is None:
            raise CommandError(
                "this plan was carried out already or has expired: plan again", Exit.CHANGED
            )
        namespace, name, change, found = planned
        errors: list[CommandError] = []

        def run() -> None:
            try:
                with _errors_in_page_words():
                    found.do()
            except CommandError as error:
                errors.append(error)
            self._add_to_timeline(
                namespace, name, f"{change}: {errors[0] if errors else 'requested on this page'}"
            )

        work = threading.Thread(target=run, daemon=True)
        work.start()
        work.join(_MAX_WAIT)
        if errors:
            raise errors[0]
        return {"text": in_page_words(found.heard.out.getvalue()), "going": work.is_alive()}


@contextmanager
def _errors_in_page_words() -> Iterator[None]:
    """Replaces commands by the names of the page's buttons in the message of a CommandError of the
    block.
    """
    try:
        yield
    except CommandError as error:
        error.args = (in_page_words(str(error)), *error.args[1:])
        raise


def _unknown(_verb: Verb) -> None:
    raise UsageError("the page offers no such change")


def _converted(change: str, values: object) -> dict[str, Any]:
    signature = inspect.signature(OFFERED.get(change, _unknown), eval_str=True)
    known = dict([*signature.parameters.items()][1:])
    if not isinstance(values, dict) or not values.keys() <= known.keys():
        raise UsageError(f"change {change!r} accepts only {', '.join(known) or 'no values'}")
    try:
        given = {key: msgspec.convert(each, known[key].annotation) for key, each in values.items()}
        signature.bind(None, **given)
    except (msgspec.ValidationError, TypeError) as error:
        raise UsageError(f"{change}: {error}") from None
    return given
