"""Turns the record of a run into a forecast: outcomes, steps, budgets, and stuck instances."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import itemgetter

from kubectl_tapp.base.hints import tapp_command
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.decide.budget import Limit, limits
from kubectl_tapp.edit.revisions import written_by_service
from kubectl_tapp.forecast.forecast import Forecast, InstanceForecast, Outcome, Rest, Step
from kubectl_tapp.forecast.run_log import (
    SIZE_PATH,
    DecidedWrite,
    RunLog,
    Write,
    paused_sentences,
    stuck_sentences,
    unavailable,
)
from kubectl_tapp.forecast.templates import template_bodies, templates_of
from tapp.answer.refusals import refusals
from tapp.decide.changes import Adopt, Mark, Resize, Update
from tapp.decide.instances import Instance
from tapp.decide.verdicts import Action, Verdict
from tapp.declared.differences import Effect, differences
from tapp.declared.templates import Template
from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.kinds import DISRUPTION_BUDGET
from tapp.words.reasons import Reason, Standing
from tapp.words.vocabulary import TEMPLATE_HASH

_FORCING_RECREATION = (Effect.RECREATE, Effect.RESOURCES, Effect.RESIZE)


@dataclass
class Outcomes:
    """Computes a forecast from the record of one simulation.

    Attributes:
        observed: the TApp before the edit, with its objects.
        edited: the TApp after the edit.
        before: the decisions before the edit; None if the TApp does not exist yet or is invalid.
        log: the record of the simulation.
        now: the time at which the simulation began, in seconds since the epoch.
    """

    observed: Observed
    edited: Document
    before: Plan | None
    log: RunLog
    now: float

    def __post_init__(self) -> None:
        """Groups the writes and decisions in the record by instance."""
        before, log = self.before, self.log
        self._first: dict[int, Instance] = _by_id(before or log.first)
        self._last: dict[int, Instance] = _by_id(log.last)
        later = () if log.rest is None else log.rest.acts
        self._acts = grouped((a.instance, a) for a in log.acts if a.instance is not None)
        self._later = {a.instance: a for a in later if a.instance is not None}
        self._templates_before, self._templates = map(
            templates_of, (self.observed.tapp, self.edited)
        )
        cases = [] if log.last is None else log.last.notable
        self._undone: dict[int, Verdict] = {case.instance.id: case.decision for case in cases}
        self._bodies = self._known_bodies()
        self._fields: dict[tuple[str, str], tuple[str, ...]] = {}

    def forecast(self, base: Forecast, *, pace: Iterable[str], notes: Iterable[str]) -> Forecast:
        """Returns the forecast `base`, completed with everything that the record shows.

        `pace` are sentences about the assumed times, and `notes` are sentences about other
        assumptions.
        """
        log = self.log
        claims = self._claims()
        ids = sorted({*self._first, *self._last, *self._acts})
        unavailable_then = self._unavailable()
        return replace(
            base,
            instances=tuple(self._instance(id, claims) for id in ids),
            services=self._effects_on("Service", "changed"),
            disruption_budget=self._disruption_budget(),
            steps=self._steps() if log.played else (),
            writes=self._writes() if log.played else (),
            limits=self._limits(),
            domain="" if log.last is None else log.last.world.tapp.spec.update_strategy.domain,
            should_run=0 if log.last is None else log.last.budgets.should_run,
            unavailable_before=0 if self.before is None else unavailable(self.before),
            unavailable_worst=max([count for _, count in unavailable_then], default=0),
            unavailable=unavailable_then,
            duration=self._seconds_from_now(log.ended),
            pace=tuple(pace),
            stuck=tuple(stuck_sentences(log)),
            paused=tuple(paused_sentences(log)),
            refusals=self._refusals(),
            remarks=(*base.remarks, *self._rollback()),
            notes=tuple(notes),
            states={
                id: tuple((self._seconds_from_now(at), state) for at, state in spans)
                for id, spans in sorted(log.states.items())
            },
            claims=claims,
            rest=self._rest(),
        )

    def _rest(self) -> Rest | None:
        found = self.log.rest
        if found is None:
            return None
        return Rest(tuple(found.ids), self._seconds_from_now(found.at), round(found.seconds, 2))

    # Instances.

    def _rollback(self) -> list[str]:
        """Returns a list with the sentence that the newest revision is rolled back after the edit.

        The list is empty if that revision is not rolled back.
        """
        rollback = None if self.log.last is None else self.log.last.rollback
        if rollback is None or rollback.active is None:
            return []
        note, retry = rollback.active, tapp_command(self.edited, "retry")
        return [
            f"revision {note.revision} was rolled back at {note.at}, so instances of the rolling "
            f"template run revision {rollback.to}. {retry} rolls revision {note.revision} out once "
            "more"
        ]

    def _instance(self, id: int, claims: dict[str, str]) -> InstanceForecast:
        first, last, acts = self._first.get(id), self._last.get(id), self._acts.get(id, [])
        done, later = [act for act in acts if act.outcome == "ok"], self._later.get(id)
        due = done if later is None else [later]
        outcome, verdict = self._outcome(first, last, due)
        current = last or first
        template = "" if current is None else current.template_name
        containers = dict.fromkeys(
            name
            for act in due
            if act.verdict is not None and isinstance(act.verdict.change, Update)
            for name in act.verdict.change.images
        )
        waits = self._waits_for(id)
        if waits and outcome is Outcome.UNCHANGED:
            outcome = Outcome.WAITING
        left = self._undone.get(id)
        if outcome is Outcome.UNCHANGED and left is not None and left.reason == Reason.KEPT:
            verdict = left
        fields = self._fields_forcing_recreation(first, outcome, verdict)
        return InstanceForecast(
            id=id,
            outcome=outcome,
            template=template,
            containers=tuple(containers),
            fields=fields,
            reason="" if verdict is None else verdict.reason,
            message="" if verdict is None else verdict.message,
            began=self._seconds_from_now(done[0].at) if done and later is None else None,
            done=self._done_at(id, done) if later is None else None,
            waits_for=waits,
            claims=self._claims_of(id, claims),
        )

    def _outcome(
        self, first: Instance | None, last: Instance | None, done: list[DecidedWrite]
    ) -> tuple[Outcome, Verdict | None]:
        had = first is not None and first.pod is not None and not first.pod.terminating
        old = None if first is None or first.pod is None else first.pod.uid
        has = last is not None and last.pod is not None and last.pod.uid != old
        deletes = [act for act in done if act.verb == "delete"]
        updates = [act for act in done if act.verb == "update"]
        creates = [act for act in done if act.verb == "create"]
        verdict = next((act.verdict for act in done if act.verdict is not None), None)
        if deletes and had:
            verdict = deletes[0].verdict or verdict
            comes_back = creates or has or (last is not None and last.should_run)
            return (Outcome.RECREATED if comes_back else Outcome.DELETED), verdict
        if creates:
            return Outcome.CREATED, creates[0].verdict or verdict
        # A notice on a pod on hold does not change the instance.
        verdicts = [act.verdict for act in updates if act.verdict is not None]
        changing = [each for each in verdicts if each.reason != Reason.HELD]
        in_place = next(
            (
                verdict
                for verdict in changing
                if isinstance(verdict.change, Resize)
                or (isinstance(verdict.change, Update) and verdict.change.images)
            ),
            None,
        )
        if in_place is not None:
            return Outcome.IN_PLACE, in_place
        written = next((v for v in changing if isinstance(v.change, (Update, Adopt, Mark))), None)
        if written is not None:
            return Outcome.LABELLED, written
        return Outcome.UNCHANGED, None

    def _fields_forcing_recreation(
        self, first: Instance | None, outcome: Outcome, verdict: Verdict | None
    ) -> tuple[str, ...]:
        """Returns the fields of the template whose change requires a new pod of the instance.

        `first` is the instance before the edit, `outcome` the effect of the edit, and `verdict` the
        decision that causes the effect. The result is empty if the instance does not get a new pod
        for its template.
        """
        if outcome is not Outcome.RECREATED or first is None or first.pod is None:
            return ()
        if verdict is None or verdict.action is not Action.RECREATE:
            return ()
        last = self._last.get(first.id)
        old = first.pod.spec.template_hash or ""
        if last is None or last.template is None:
            return ()
        key = old, last.template.revision
        if key not in self._fields:
            templates = self._templates
            before = self._template_body(old, first.id)
            new = None if templates is None else templates.body_of(first.id)
            ignores = last.template.ignores_resources
            found = (
                differences(before, new, ignores_resources=ignores)
                if before is not None and new is not None
                else []
            )
            self._fields[key] = tuple(
                item.path for item in found if item.effect in _FORCING_RECREATION
            )
        return self._fields[key]

    def _template_body(self, revision: str, id: int) -> Document | None:
        """Returns the content of the template with this revision hash; None if it is not known.

        If the spec before the edit has the template, the placeholders are filled for this instance.
        """
        templates = self._templates_before
        if templates is not None:
            found = templates.of(id)
            if isinstance(found, Template) and found.revision == revision:
                return templates.body_of(id)
        return self._bodies.get(revision)

    def _known_bodies(self) -> dict[str, Document]:
        """Returns revision hash -> template, from the spec before the edit and the
        ControllerRevisions.
        """
        found: dict[str, Document] = {
            kept["metadata"]["labels"][TEMPLATE_HASH]: kept["data"]["template"]
            for kept in written_by_service(self.observed.revisions)
        }
        if self._templates_before is not None:
            for name, body in template_bodies(self.observed.tapp).items():
                resolved = self._templates_before.named(name)
                if isinstance(resolved, Template):
                    found[resolved.revision] = body
        return found

    def _done_at(self, id: int, done: list[DecidedWrite]) -> float | None:
        """Returns when an instance changed for the last time, in seconds from now.

        `done` are the successful writes to its pod. None if there was no such write.
        """
        spans = self.log.states.get(id)
        if not done or not spans:
            return None
        return self._seconds_from_now(max(spans[-1][0], done[-1].at))

    def _waits_for(self, id: int) -> str:
        verdict = None if id in self._later else self._undone.get(id)
        if verdict is not None and verdict.reason.standing is not Standing.DONE:
            return verdict.message
        return ""

    # Order and budget.

    def _steps(self) -> tuple[Step, ...]:
        by_time = grouped(
            (act.at, act)
            for act in self.log.acts
            if act.instance is not None and act.outcome == "ok"
        )
        times = [*sorted(by_time), float("inf")]
        return tuple(self._step(at, until, by_time[at]) for at, until in pairwise(times))

    def _step(self, at: float, until: float, acts: list[DecidedWrite]) -> Step:
        groups: dict[str, list[int]] = defaultdict(list)
        for act in acts:
            if act.instance is None:
                continue
            kind = {"create": "created", "update": "updated", "delete": "deleted"}.get(act.verb)
            verdict = act.verdict
            if kind == "deleted" and verdict is not None and verdict.action is Action.RECREATE:
                kind = "recreated"
            if kind == "updated" and verdict is not None and not isinstance(verdict.change, Update):
                continue
            if kind is not None:
                groups[kind].append(act.instance)
        looks = self.log.looks
        begin = max(bisect_right(looks, at, key=itemgetter(0)) - 1, 0)
        end = bisect_left(looks, until, key=itemgetter(0))
        return Step(
            self._seconds_from_now(at),
            **{kind: tuple(sorted(ids)) for kind, ids in groups.items()},
            unavailable=max([count for _, count in looks[begin:end]], default=0),
        )

    def _seconds_from_now(self, at: float) -> float:
        return round(max(at - self.now, 0.0), 2)

    def _writes(self) -> tuple[Write, ...]:
        refused, found = set[tuple[str, ...]](), []
        for act in self.log.acts:
            if act.outcome != "ok":
                key = act.verb, act.kind, act.name, act.outcome
                if key in refused:
                    continue
                refused.add(key)
            found.append(
                Write(
                    self._seconds_from_now(act.at),
                    *(act.verb, act.kind, act.name, act.paths, act.outcome, act.message),
                )
            )
        return tuple(found)

    def _unavailable(self) -> tuple[tuple[float, int], ...]:
        counts = [(self._seconds_from_now(at), count) for at, count in self.log.looks]
        return tuple(
            each for each, last in zip(counts, [(0.0, -1), *counts], strict=False)
            if each[1] != last[1]
        )  # fmt: skip

    def _limits(self) -> tuple[Limit, ...]:
        plan = self.log.first
        return () if plan is None else tuple(each for each in limits(plan) if each.instances)

    # Conditions.

    def _refusals(self) -> tuple[tuple[str, str], ...]:
        before = {(f.type, f.message) for f in refusals(self.before)} if self.before else set()
        plans = [plan for plan in (self.log.first, self.log.last) if plan is not None]
        found = {(item.type, item.message): None for plan in plans for item in refusals(plan)}
        return tuple((str(type), text) for type, text in found if (type, text) not in before)

    # Claims and Services.

    def _claims(self) -> dict[str, str]:
        kept = {claim["metadata"]["name"]: "kept" for claim in self.observed.claims}
        effects = self._effects_on("PersistentVolumeClaim", "modified")
        # A larger claim counts as grown, even if its VolumeAttributesClass changes, too.
        grown = {act.name: "grown" for act in self._all_acts() if SIZE_PATH in act.paths}
        return kept | {name: grown.get(name, effect) for name, effect in effects.items()}

    def _disruption_budget(self) -> str:
        """Returns the effect of the edit on the PodDisruptionBudget of the TApp, or an empty text.

        Only the state after the last sync counts: a rollout raises and lowers `minAvailable`.
        """
        last = self.log.last
        if last is None:
            return ""
        plan, before = last.findings.storage.disruption_budget, None
        for found in self.observed.plain.get(DISRUPTION_BUDGET, []):
            if found["metadata"]["name"] == self.observed.name:
                before = found["spec"].get("minAvailable")
        after = None if plan.apply is None else plan.apply["spec"]["minAvailable"]
        if after is None:
            removed = before is not None and last.world.tapp.spec.disruption_budget is None
            return "PodDisruptionBudget deleted" if removed else ""
        if before is None:
            return f"PodDisruptionBudget created (minAvailable {after})"
        if before == after:
            return ""
        return f"PodDisruptionBudget changed (minAvailable {before} to {after})"

    def _effects_on(self, kind: str, updated: str) -> dict[str, str]:
        """Returns the effects on the children of a kind: their names -> `created`, `deleted` or
        `updated`.

        The parameter `updated` is the word for a child that was updated, such as `changed`.
        """
        results = {"create": "created", "delete": "deleted", "update": updated}
        return {
            act.name: results[act.verb]
            for act in self._all_acts()
            if act.kind == kind and act.outcome == "ok" and act.verb in results
        }

    def _all_acts(self) -> tuple[DecidedWrite, ...]:
        """Returns the simulated writes, and the writes that repeat them and were not simulated."""
        return (*self.log.acts, *(() if self.log.rest is None else self.log.rest.acts))

    def _claims_of(self, id: int, claims: dict[str, str]) -> dict[str, str]:
        ending = f"-{self.observed.name}-{id}"
        return {name: how for name, how in claims.items() if name.endswith(ending)}


def _by_id(plan: Plan | None) -> dict[int, Instance]:
    return {} if plan is None else {instance.id: instance for instance in plan.instances}
