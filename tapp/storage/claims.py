"""Volume claims: which stay, which are made, and the few that may ever be deleted.

A claim is deleted only where its policy says `Delete`; what has no place stays (docs/design.md,
"Claims").
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tapp.declared.beside import claim_templates
from tapp.declared.lookup import Templates
from tapp.declared.placeholders import NO_SLOTS, UnfilledError
from tapp.declared.templates import Template, Unresolved
from tapp.kube.objects import ClaimObject
from tapp.storage.new_claims import NewClaim, claim_problem, name_problem
from tapp.words.digits import whole
from tapp.words.quoted import quoted
from tapp.world import World

_DIGITS = 10  # More digits no instance's number has


@dataclass
class ClaimPlan:
    """Fate of the claims."""

    keep: list[ClaimObject] = field(default_factory=list)  # returned, so that they stay
    delete: list[ClaimObject] = field(default_factory=list)  # left out, so that they go
    create: list[NewClaim] = field(default_factory=list)  # of pods to be made, or without a node
    # instance -> volume -> claim, of these instances
    volumes: dict[int, dict[str, str]] = field(default_factory=dict)


def instance_number(name: str, prefix: str) -> int | None:
    """The instance's number in `<prefix><number>`; None where there is no canonical one.

    `007` is no number of ours: two names would mean one instance.
    """
    number = whole(name[len(prefix) :], _DIGITS) if name.startswith(prefix) else None
    return number if name == f"{prefix}{number}" else None


class Made(NamedTuple):
    """Template and past that an instance's pod is made of."""

    id: int  # the instance's number
    template: Template | Unresolved
    # what it is kept at, where that is more than the template: the TApp's templates as the history
    # has them
    past: Templates | None = None


class OwnClaims:
    """The claim templates of each instance: those of the spec, with their placeholders filled in.

    `written`: name -> claim template, as it is written; `differ`: any of them has placeholders.
    """

    def __init__(self, templates: Templates, now: Templates) -> None:
        """`templates` have them, `now` knows what the instances have of their own."""
        self._now, self.written = now, claim_templates(templates.spec)
        found = templates.claim_slots()
        self._slots = {name: slots for name in self.written if (slots := found[name])}
        self.differ = bool(self._slots)

    def named(self, name: str, instance: int) -> dict[str, Any]:
        """The claim template of this name, of one instance; UnfilledError: it lacks a value."""
        slots, written = self._slots.get(name, NO_SLOTS), self.written[name]
        try:
            if isinstance(slots, str):
                raise UnfilledError(slots)
            if not slots:
                return written
            filled: dict[str, Any] = slots.filled(written, self._now.own(slots, instance))
        except UnfilledError as error:
            raise UnfilledError(f"claim template {quoted(name)}: {error}") from None
        return filled


class Claims:
    """The claims of each instance's pod; `differ`: today's templates have placeholders.

    A volume is an instance's claim if there is a claim template of its name, of today or, for who
    is kept, as recorded; or if it is mounted, no volume has its name, and the claim is there.
    """

    def __init__(self, world: World) -> None:
        """`world` is what was observed."""
        self._app, self._observed = world.tapp.metadata.name, world.claims
        self._templates, self._past = world.templates, dict[int, OwnClaims]()
        self._now = OwnClaims(world.templates, world.templates)
        self._world, self._problems = world, dict[int, str]()
        self._there: dict[str, dict[str, str]] | None = None
        self.differ = self._now.differ

    def of(self, made: Made) -> dict[str, str]:
        """Volume -> claim of one instance, those that are to be made included."""
        found = claims_of(self._app, made.id, self._named(made))
        if isinstance(made.template, Template) and made.template.mounts:
            mounts, there = made.template.mounts, self._seen(made.id)
            more = {name for name in there if name in mounts and name not in found}
            if more:
                found.update((name, there[name]) for name in mounts if name in more)
        return found

    def template_of(self, volume: str, past: Templates | None) -> dict[str, Any] | None:
        """The template of an instance's claim, as it is written; today's template comes first.

        None where there is a claim alone; `past` is that of the instance (`Made`).
        """
        found = self._now.written.get(volume)
        return self._then(past).written.get(volume) if found is None else found

    def filled(self, volume: str, instance: int, past: Templates | None) -> dict[str, Any] | None:
        """The same, with placeholders filled in. Raises UnfilledError: that is not possible."""
        for own in (self._now, self._then(past)):
            if volume in own.written:
                return own.named(volume, instance)
        return None

    def problem_of(self, made: Made) -> str:
        """The reason why an instance's claim templates cannot be filled in, "" where they can.

        Of who is kept at more than a template those count that claims are to be made of.
        """
        there = self._observed if made.past is not None else ()
        own = claims_of(self._app, made.id, self._named(made))
        try:
            for volume in [volume for volume, claim in own.items() if claim not in there]:
                self.filled(volume, made.id, made.past)
        except UnfilledError as error:
            return str(error)
        return ""

    def refused(self, made: Made) -> str:
        """Returns why the API server would refuse a claim that an instance lacks, or ""."""
        if not self._now.written and made.past is None:
            return ""
        for volume, claim in self.of(made).items():
            if claim not in self._observed and (why := self._refused(volume, claim, made)):
                return f"claim template {quoted(volume)}: {why}"
        return ""

    def _refused(self, volume: str, claim: str, made: Made) -> str:
        if why := name_problem(claim):
            return why
        try:
            template = self.filled(volume, made.id, made.past)
        except UnfilledError:  # `problem_of` has the reason
            template = None
        if template is None:
            return ""
        written = self.template_of(volume, made.past)
        if template is written and id(written) in self._problems:
            return self._problems[id(written)]
        new = NewClaim(claim, made.id, template)
        why = claim_problem(self._world.tapp, new, self._world.namespace_uid or "")
        if template is written:  # the same for all instances, but for a few digits
            self._problems[id(written)] = why
        return why

    def own_among(self, made: Made, claims: Collection[str]) -> list[str]:
        """Claims among some, there or not, that an instance's pod may have as its own."""
        mounts = made.template.mounts if isinstance(made.template, Template) else ()
        named = claims_of(self._app, made.id, self._named(made)).values()
        found = dict.fromkeys([claim for claim in named if claim in claims])
        suffix = f"-{self._app}-{made.id}"
        mounted = [claim for claim in claims if claim.removesuffix(suffix) in mounts]
        return list(found | dict.fromkeys([c for c in mounted if c.endswith(suffix)]))

    def _seen(self, instance: int) -> dict[str, str]:
        """Volume -> claim, of the claims that are there and have an instance's number.

        A template may mount thousands of volumes that it lacks: they are not looked up one by one
        for each instance.
        """
        if self._there is None:
            self._there, app = {}, f"-{self._app}"
            for claim in self._observed:
                head, _, number = claim.rpartition("-")
                if head.endswith(app):
                    self._there.setdefault(number, {})[head.removesuffix(app)] = claim
        return self._there.get(str(instance), {})

    def _named(self, made: Made) -> Collection[str]:
        if made.past is None:
            return self._now.written
        if made.past.beside.volume_claim_templates is not None:
            return self._then(made.past).written
        # Nothing is recorded: those of today that it has had, as its claims show, or cannot do
        # without.
        mounts = made.template.mounts if isinstance(made.template, Template) else []
        own = claims_of(self._app, made.id, self._now.written)
        return [name for name in own if own[name] in self._observed or name in mounts]

    def _then(self, past: Templates | None) -> OwnClaims:
        if past is None:
            return self._now
        if id(past) not in self._past:
            self._past[id(past)] = OwnClaims(past, self._templates)
        return self._past[id(past)]


def claims_of(app: str, instance: int, templates: Iterable[str]) -> dict[str, str]:
    """Claim template name -> name of the instance's claim: `<claim>-<tapp>-<id>`."""
    return {name: f"{name}-{app}-{instance}" for name in templates}


def plan_claims(world: World, waiting: Iterable[Made]) -> ClaimPlan:
    """Sorts the claims of a living TApp.

    `waiting` are instances whose pod is about to be created, or waits for a node: a claim that was
    refused once, or deleted meanwhile, keeps it from getting one.
    """
    result, own = ClaimPlan(), Claims(world)
    app, spec, observed = world.tapp.metadata.name, world.tapp.spec, world.claims
    prefixes = [f"{name}-{app}-" for name in claim_templates(spec)]
    delete_scaled = spec.persistent_volume_claim_retention_policy.when_scaled == "Delete"
    for name in sorted(observed):
        claim = observed[name]
        numbers = [instance_number(name, prefix) for prefix in prefixes] if delete_scaled else []
        number = next((number for number in numbers if number is not None), None)
        gone = number is not None and number >= spec.replicas and number not in world.pods
        (result.delete if gone else result.keep).append(claim)
    for made in waiting:
        volumes = result.volumes[made.id] = own.of(made)
        with suppress(UnfilledError):  # it has a pod that waits for a node
            lacking = [volume for volume, claim in volumes.items() if claim not in observed]
            filled = {volume: own.filled(volume, made.id, made.past) for volume in lacking}
            result.create += [
                NewClaim(volumes[volume], made.id, template)
                for volume, template in filled.items()
                if template is not None
            ]
    return result
