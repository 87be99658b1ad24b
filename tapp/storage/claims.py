"""PersistentVolumeClaims: which claims a pod uses, and which are created or deleted.

Entry points: `Claims` says which claims an instance's pod uses. `plan_claims` says which claims the
response contains. A claim holds data, so it is deleted only if
`persistentVolumeClaimRetentionPolicy` says so. Any other claim stays, even if no instance needs it
(docs/claims.md).
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tapp.declared.claims_and_service import claim_templates
from tapp.declared.lookup import Templates
from tapp.declared.placeholders import NO_SLOTS, UnfilledError
from tapp.declared.templates import Template
from tapp.kube.objects import ClaimObject
from tapp.storage.new_claims import NewClaim, claim_problem, name_problem
from tapp.words.digits import whole
from tapp.words.quoted import quoted
from tapp.world import World

# No instance number has more digits.
_DIGITS = 10


@dataclass
class ClaimPlan:
    """The claims that the response keeps, leaves out (so that they are deleted) and creates."""

    keep: list[ClaimObject] = field(default_factory=list)  # Kept: they are in the response.
    # Deleted: they are not in the response.
    delete: list[ClaimObject] = field(default_factory=list)
    # To be created, for pods that are created or have no node yet.
    create: list[NewClaim] = field(default_factory=list)
    # Instance -> volume name -> claim name, for pods that are created or have no node yet.
    volumes: dict[int, dict[str, str]] = field(default_factory=dict)


def instance_number(name: str, prefix: str) -> int | None:
    """Returns the instance number at the end of an object's name, after `prefix`.

    Returns None if the name does not consist of `prefix` and a number. A number with leading zeros
    does not count, because two names would then stand for one instance.
    """
    number = whole(name[len(prefix) :], _DIGITS) if name.startswith(prefix) else None
    return number if name == f"{prefix}{number}" else None


class PodSource(NamedTuple):
    """The instance number and the template from which an instance's next pod is created.

    If a partition keeps the instance at an older revision, `recorded` is the spec of that revision.
    """

    id: int  # Number of the instance.
    template: Template | None  # Template of the instance, or None.
    # The recorded spec that a partition keeps the instance at; None if the current spec counts.
    recorded: Templates | None = None


class OwnClaims:
    """The claim templates of one spec, and their placeholders filled in for an instance.

    `written` maps the name of a claim template to the template with its placeholders. `differ` is
    True if a claim template has placeholders, so that the claims of two instances may differ.
    """

    def __init__(self, templates: Templates, now: Templates) -> None:
        """Reads the claim templates of a spec.

        Args:
            templates: the spec with the claim templates: the current one, or an older one from a
                ControllerRevision.
            now: the current spec, whose values are filled in.
        """
        self._now, self.written = now, claim_templates(templates.spec)
        found = templates.claim_slots
        self._slots = {name: slots for name in self.written if (slots := found[name])}
        self.differ = bool(self._slots)

    def named(self, name: str, instance: int) -> dict[str, Any]:
        """Returns the claim template with this name, filled in for an instance.

        `instance` is the number of the instance. Raises UnfilledError if a value is missing or
        wrong.
        """
        slots, written = self._slots.get(name, NO_SLOTS), self.written[name]
        try:
            if isinstance(slots, str):
                raise UnfilledError(slots)
            if not slots:
                return written
            filled: dict[str, Any] = slots.filled(written, self._now.texts_of(slots, instance))
        except UnfilledError as error:
            raise UnfilledError(f"claim template {quoted(name)}: {error}") from None
        return filled


class Claims:
    """Finds the claims that the pod of an instance uses.

    A volume of a pod uses the instance's claim in two cases:

    - A claim template has the name of the volume. If a partition keeps the instance at an older
      revision, the claim templates of that revision count as well as the current ones.
    - A container mounts the volume, the pod template does not define it, and a claim with the
      volume's name exists. So a claim is used again after a rollback to a template that mounts it.

    `differ` is True if a current claim template has placeholders.
    """

    def __init__(self, world: World) -> None:
        self._app, self._observed = world.tapp.metadata.name, world.claims
        self._templates, self._recorded = world.templates, dict[int, OwnClaims]()
        self._now = OwnClaims(world.templates, world.templates)
        self._world, self._problems = world, dict[int, str]()
        self._there: dict[str, dict[str, str]] | None = None
        self.differ = self._now.differ

    def of(self, source: PodSource) -> dict[str, str]:
        """Returns volume name -> claim name for an instance; the claims need not exist yet."""
        found = claims_of(self._app, source.id, self._named(source))
        # A removed claim template may have left a claim that the template of the instance mounts.
        if source.template is not None and source.template.mounts:
            mounts, there = source.template.mounts, self._seen(source.id)
            more = {name for name in there if name in mounts and name not in found}
            if more:
                found.update((name, there[name]) for name in mounts if name in more)
        return found

    def template_of(self, volume: str, recorded: Templates | None) -> dict[str, Any] | None:
        """Returns the claim template for a volume, with its placeholders.

        Returns None if no claim template has the volume's name. The current spec takes precedence.

        Args:
            volume: the name of the volume.
            recorded: the older spec at which a partition keeps the instance; None if no partition
                keeps it.
        """
        found = self._now.written.get(volume)
        return self._at(recorded).written.get(volume) if found is None else found

    def filled(
        self, volume: str, instance: int, recorded: Templates | None
    ) -> dict[str, Any] | None:
        """Returns the claim template for a volume, filled in for an instance.

        Returns None if no claim template has the volume's name. Raises UnfilledError if a value is
        missing or wrong.

        Args:
            volume: the name of the volume.
            instance: the number of the instance.
            recorded: the older spec at which a partition keeps the instance; None if no partition
                keeps it.
        """
        for own in (self._now, self._at(recorded)):
            if volume in own.written:
                return own.named(volume, instance)
        return None

    def filled_at_revision(
        self, volume: str, instance: int, recorded: Templates | None
    ) -> dict[str, Any] | None:
        """Returns the claim template that the revision of an instance has for a volume, filled in.

        `filled` prefers the current spec; this method reads only the spec of the instance's own
        revision. Returns None if that revision has no such claim template, or if its record has no
        claim templates. Raises UnfilledError if a value is missing or wrong.

        Args:
            volume: the name of the volume.
            instance: the number of the instance.
            recorded: the older spec at which a partition keeps the instance; None if the current
                spec counts.
        """
        if recorded is not None and recorded.other_parts.volume_claim_templates is None:
            return None
        own = self._at(recorded)
        return own.named(volume, instance) if volume in own.written else None

    def problem_of(self, source: PodSource) -> str:
        """Returns why an instance's claim templates cannot be filled in, or an empty string.

        If a partition keeps the instance at an older spec, only templates of claims that do not
        exist are checked. `source` is the instance.
        """
        # The values of a kept instance may have changed since. That must not stop its next pod from
        # using the claims that it already has.
        there = self._observed if source.recorded is not None else ()
        own = claims_of(self._app, source.id, self._named(source))
        try:
            for volume in [volume for volume, claim in own.items() if claim not in there]:
                self.filled(volume, source.id, source.recorded)
        except UnfilledError as error:
            return str(error)
        return ""

    def refused(self, source: PodSource) -> str:
        """Returns why the API server would refuse a claim that an instance lacks.

        Returns an empty string if the API server would accept all claims that the instance lacks.
        `source` is the instance.
        """
        if not self._now.written and source.recorded is None:
            return ""
        for volume, claim in self.of(source).items():
            if claim not in self._observed and (why := self._refused(volume, claim, source)):
                return f"claim template {quoted(volume)}: {why}"
        return ""

    def _refused(self, volume: str, claim: str, source: PodSource) -> str:
        """Returns why the API server would refuse a claim, or an empty string if it would not.

        If the claim template cannot be filled in, the result is also an empty string, because
        `problem_of` reports that.

        Args:
            volume: the name of the volume.
            claim: the name of the claim.
            source: the instance.
        """
        if why := name_problem(claim):
            return why
        try:
            template = self.filled(volume, source.id, source.recorded)
        # `request_problem` reports this.
        except UnfilledError:
            template = None
        if template is None:
            return ""
        written = self.template_of(volume, source.recorded)
        if template is written and id(written) in self._problems:
            return self._problems[id(written)]
        new = NewClaim(claim, source.id, template)
        why = claim_problem(self._world.tapp, new, self._world.namespace_uid or "")
        # Without placeholders the claims of all instances differ only in a few digits.
        if template is written:
            self._problems[id(written)] = why
        return why

    def own_among(self, source: PodSource, claims: Collection[str]) -> list[str]:
        """Returns those of the given claims that an instance's pod may use as its own claims.

        `source` is the instance. `claims` are names of claims, which need not exist.
        """
        mounts = () if source.template is None else source.template.mounts
        # Mounted claims are found by their suffix: `claims` are few, and `mounts` may be thousands.
        named = claims_of(self._app, source.id, self._named(source)).values()
        found = dict.fromkeys([claim for claim in named if claim in claims])
        suffix = f"-{self._app}-{source.id}"
        mounted = [claim for claim in claims if claim.removesuffix(suffix) in mounts]
        return list(found | dict.fromkeys([c for c in mounted if c.endswith(suffix)]))

    def _seen(self, instance: int) -> dict[str, str]:
        """Returns volume name -> claim name for the existing claims of an instance.

        The first call sorts all claims by instance number. A template may mount thousands of
        volumes that it does not define, and a search for each of them in each instance would take
        too long.
        """
        if self._there is None:
            self._there, app = {}, f"-{self._app}"
            for claim in self._observed:
                head, _, number = claim.rpartition("-")
                if head.endswith(app):
                    self._there.setdefault(number, {})[head.removesuffix(app)] = claim
        return self._there.get(str(instance), {})

    def _named(self, source: PodSource) -> Collection[str]:
        """Returns the names of the claim templates that count for an instance.

        - If the current spec counts for the instance: its claim templates.
        - If a partition keeps the instance at an older spec: the claim templates of the older spec.
        - If the record of the older spec has no claim templates: those of the current spec that the
          instance has a claim of, or that its containers mount.
        """
        if source.recorded is None:
            return self._now.written
        if source.recorded.other_parts.volume_claim_templates is not None:
            return self._at(source.recorded).written
        # The record has no claim templates. So the current ones count for which the instance has a
        # claim, or without which its containers could not mount a volume.
        mounts = () if source.template is None else source.template.mounts
        own = claims_of(self._app, source.id, self._now.written)
        return [name for name in own if own[name] in self._observed or name in mounts]

    def _at(self, recorded: Templates | None) -> OwnClaims:
        """Returns the claim templates of an older spec from the history.

        If `recorded` is None, returns the claim templates of the current spec.
        """
        if recorded is None:
            return self._now
        # Instances that are kept at one revision share one object, so the cache has few entries.
        if id(recorded) not in self._recorded:
            self._recorded[id(recorded)] = OwnClaims(recorded, self._templates)
        return self._recorded[id(recorded)]


def claims_of(app: str, instance: int, templates: Iterable[str]) -> dict[str, str]:
    """Returns claim template name -> name of an instance's claim.

    The name of the claim is `<claim template>-<tapp>-<id>`.

    Args:
        app: the name of the TApp.
        instance: the number of the instance.
        templates: the names of the claim templates.
    """
    return {name: f"{name}-{app}-{instance}" for name in templates}


def plan_claims(world: World, waiting: Iterable[PodSource]) -> ClaimPlan:
    """Decides which claims of a TApp are kept, created and deleted.

    The caller has checked that the TApp is not being deleted.

    Args:
        world: the TApp with its children.
        waiting: the instances whose pod is about to be created, or exists and has no node. The
            scheduler does not assign a node to a pod while one of its claims is missing. So if a
            claim was refused, or was deleted after its pod was created, the claim is requested
            again.
    """
    result, own = ClaimPlan(), Claims(world)
    app, spec, observed = world.tapp.metadata.name, world.tapp.spec, world.claims
    prefixes = [f"{name}-{app}-" for name in claim_templates(spec)]
    delete_scaled = spec.persistent_volume_claim_retention_policy.when_scaled == "Delete"
    for name in sorted(observed):
        claim = observed[name]
        numbers = [instance_number(name, prefix) for prefix in prefixes] if delete_scaled else []
        number = next((number for number in numbers if number is not None), None)
        # A claim stays while its pod exists, so that no data goes while a container may use it.
        gone = number is not None and number >= spec.replicas and number not in world.pods
        (result.delete if gone else result.keep).append(claim)
    for source in waiting:
        volumes = result.volumes[source.id] = own.of(source)
        # Such an instance already has its pod. It gets its other claims when the values are right.
        with suppress(UnfilledError):
            lacking = [volume for volume, claim in volumes.items() if claim not in observed]
            filled = {volume: own.filled(volume, source.id, source.recorded) for volume in lacking}
            result.create += [
                NewClaim(volumes[volume], source.id, template)
                for volume, template in filled.items()
                if template is not None
            ]
    return result
