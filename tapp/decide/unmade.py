"""Obstacles to a pod of an instance's template, while it still has the one before.

A pod that goes for such a template never comes back. So the instance keeps its pod until the spec
is mended (docs/design.md, "Templates of which no pod can be made").
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tapp.decide.filling import MOST
from tapp.decide.instances import Instance
from tapp.declared.beside import claim_templates
from tapp.declared.templates import Template, claim_name
from tapp.kube.names import is_dns_label
from tapp.pod.pod import Pod
from tapp.storage.claims import Claims
from tapp.storage.records import Recorded
from tapp.words.quoted import quoted
from tapp.words.vocabulary import DEFAULT_TEMPLATE
from tapp.world import World


@dataclass
class Ahead:
    """Findings of a look ahead."""

    # instance -> why no pod could be made for it; one without a pod gets it all the same, because
    # admission may add what is missing
    unmade: dict[int, str] = field(default_factory=dict)
    blocked: dict[int, str] = field(default_factory=dict)  # instance without a pod -> why none now
    # sentences on templates that mount what only claims that are there stand for
    claims_alone: list[str] = field(default_factory=list)


def look_ahead(world: World, instances: Iterable[Instance]) -> Ahead:
    """Names why no pod could be made, also of the instances that have one to lose."""
    spec, found = world.tapp.spec, Ahead()
    claims = Claims(world)
    mounts = _Mounts(world, claims)
    names = [claim_name(each) for each in spec.volume_claim_templates]
    doubled = next((name for name, count in Counter(names).items() if count > 1), "")
    app = world.tapp.metadata.name
    dying = {n for n, claim in world.claims.items() if claim.metadata.deletion_timestamp}
    alone: dict[str, str] = {}
    for instance in instances:
        template = instance.template
        if not instance.should_run or type(template) is not Template:
            continue
        why = _host_problem(app, instance)
        if not why and (claims.differ or instance.past is not None):
            why = claims.problem_of(instance.made)
        if instance.pod is None:
            going = dying.intersection(claims.of(instance.made).values()) if dying else ()
            if blocked := f"claim {min(going)} is being deleted" if going else why:
                found.blocked[instance.id] = blocked
        if doubled:
            why = why or f"spec.volumeClaimTemplates has {quoted(doubled)} twice"
        if template.mounts and (lacking := mounts.lacking(template)):
            why = why or mounts.without_claim(instance, template, lacking)
            if not why and not instance.kept:
                alone[template.name] = (
                    f"{_mounts(template, lacking, min(lacking))}, which is neither a volume nor a "
                    "claim template: who has a claim of that name goes on with it, another "
                    "instance gets no pod"
                )
        if why:
            found.unmade[instance.id] = why
    found.claims_alone = [*alone.values()]
    return found


def _host_problem(app: str, instance: Instance) -> str:
    """The reason why an instance's pod cannot have a host name in the headless Service, or ""."""
    pod_name = f"{app}-{instance.id}"
    if not instance.service_name or is_dns_label(pod_name):
        return ""
    return (
        f"spec.serviceName needs pod names that are host names, and {quoted(pod_name)} is none: "
        "at most 63 letters, digits and '-'"
    )


class _Mounts:
    """Mounts without a volume, as far as the service can see.

    Admission may add volumes. That it does shows in pods that were admitted: they mount a volume
    that was not asked for. Then the API server has the word: a doubt is no refusal.
    """

    def __init__(self, world: World, claims: Claims) -> None:
        self._world, self._claims = world, claims
        self._templates = claim_templates(world.tapp.spec)
        self._lacking = dict[int, dict[str, str]]()
        self._added: set[str] | None = None
        self._texts = dict[str, str]()

    def lacking(self, template: Template) -> dict[str, str]:
        """Name -> the container that mounts it, of what no volume or claim template stands for."""
        found = self._lacking.get(id(template))
        if found is None:
            names = template.mounts.keys() - self._templates.keys()
            names -= self._added_names() if names else set()
            found = {name: template.mounts[name] for name in sorted(names)}
            self._lacking[id(template)] = found
        return found

    def without_claim(self, instance: Instance, template: Template, lacking: dict[str, str]) -> str:
        """The reason why an instance gets no pod: nor has it a claim of that name; or ""."""
        claims, own = self._claims, self._claims.of(instance.made)
        gone = (
            name
            for name in lacking
            if name not in own
            or (claims.template_of(name, instance.past) is None and not self._stays(own[name]))
        )
        if (missing := next(gone, None)) is None:
            return ""
        no = "which is neither a volume, nor a claim template, nor a claim that the instance has"
        text = f"{_mounts(template, lacking, missing)}, {no}"
        return self._texts.setdefault(text, text)  # one for all instances that share it

    def _stays(self, name: str) -> bool:
        """True if there is such a claim; one that is being deleted goes with the pod."""
        claim = self._world.claims.get(name)
        return claim is not None and claim.metadata.deletion_timestamp is None

    def _added_names(self) -> set[str]:
        if self._added is None:
            self._added, recorded = set(), Recorded(self._world, MOST)
            for id, pod in self._world.pods.items():
                if not self._added.issuperset(pod.spec.added):
                    self._added.update(_added(id, pod, recorded))
        return self._added


def _added(id: int, pod: Pod, recorded: Recorded) -> set[str]:
    """Names that admission has added: no volume of the template of the pod, if recorded."""
    content = "" if pod.foreign else recorded.of_pod(pod, id, DEFAULT_TEMPLATE, ())
    template = recorded.template(content, id, DEFAULT_TEMPLATE) if content else None
    names = {*pod.spec.added}
    return names if template is None else names & template.mounts.keys()


def _mounts(template: Template, lacking: dict[str, str], name: str) -> str:
    where = f"template {quoted(template.name)}: container {quoted(lacking[name])}"
    return f"{where} mounts {quoted(name)}"
