"""Obstacles to a pod of an instance's template, while it still has the one before.

A pod that goes for such a template never comes back. So the instance keeps its pod until the spec
is mended (docs/design.md, "Templates of which no pod can be made").
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tapp.decide.instances import Instance
from tapp.decide.new_pod import NewPods
from tapp.declared.beside import claim_templates
from tapp.declared.templates import Template, claim_name
from tapp.kube.limits import MOST_ANNOTATIONS, MOST_CUT
from tapp.kube.names import LABEL_LENGTH, MAX_NAME, is_dns_label
from tapp.kube.parts import maps_of
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Claims
from tapp.storage.records import Recorded
from tapp.words.notes import decode_since
from tapp.words.quoted import quoted, short
from tapp.words.times import seconds
from tapp.words.vocabulary import DEFAULT_TEMPLATE
from tapp.world import Options, World


@dataclass
class Ahead:
    """Findings of a look ahead."""

    # instance -> why no pod could be made for it; one without a pod gets it all the same, because
    # admission may add what is missing
    unmade: dict[int, str] = field(default_factory=dict)
    blocked: dict[int, str] = field(default_factory=dict)  # instance without a pod -> why none now
    # instance -> why neither another pod nor the one that it has can be as its template says
    unfit: dict[int, str] = field(default_factory=dict)
    # sentences on templates that mount what only claims that are there stand for
    claims_alone: list[str] = field(default_factory=list)


def look_ahead(
    world: World, recorded: Recorded, instances: Iterable[Instance], options: Options, now: float
) -> Ahead:
    """Names why no pod could be made, also of the instances that have one to lose."""
    spec, found = world.tapp.spec, Ahead()
    claims = Claims(world)
    mounts = _Mounts(world, recorded, claims)
    sizes = _Sizes(world, claims, options, now)
    names = [claim_name(each) for each in spec.volume_claim_templates]
    doubled = next((name for name, count in Counter(names).items() if count > 1), "")
    app = world.tapp.metadata.name
    dying = {n for n, claim in world.claims.items() if claim.metadata.deletion_timestamp}
    alone: dict[str, str] = {}
    for instance in instances:
        template = instance.template
        if not instance.should_run or type(template) is not Template:
            continue
        why = _own_problem(app, instance, template, claims)
        if instance.pod is None:
            going = dying.intersection(claims.of(instance.made).values()) if dying else ()
            if blocked := f"claim {min(going)} is being deleted" if going else why:
                found.blocked[instance.id] = blocked
        # Without a pod nothing can be lost, and only the API server knows what admission adds, and
        # whether it cuts Metacontroller's copy: such an instance is tried.
        no_image = "" if _is_filled_in(instance.pod, template) else template.lacking
        if unfit := no_image or sizes.problem_of(instance, template):
            found.unfit[instance.id] = unfit
            why = why or unfit
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


def _is_filled_in(pod: Pod | None, template: Template) -> bool:
    """Returns True if admission gave a pod all images that its template lacks."""
    if pod is None or not template.lacking:
        return False
    spec, lists = template.spec, ("containers", "initContainers")
    unnamed = [
        item["name"] for each in lists for item in spec.get(each, []) if not item.get("image")
    ]
    return bool(unnamed) and all(
        pod.spec.images.get(name) and not pod.spec.template_images.get(name) for name in unnamed
    )


def _own_problem(app: str, instance: Instance, template: Template, claims: Claims) -> str:
    """Returns why an instance can have no pod or claim of its own name and values, or ""."""
    why = _host_problem(app, instance) or _name_problem(app, instance, template)
    if not why and (claims.differ or instance.past is not None):
        why = claims.problem_of(instance.made)
    return why or claims.refused(instance.made)


def _host_problem(app: str, instance: Instance) -> str:
    """The reason why an instance's pod cannot have a host name in the headless Service, or ""."""
    pod_name = f"{app}-{instance.id}"
    if not instance.service_name or is_dns_label(pod_name):
        return ""
    return (
        f"spec.serviceName needs pod names that are host names, and {quoted(pod_name)} is none: "
        "at most 63 letters, digits and '-'"
    )


def _name_problem(app: str, instance: Instance, template: Template) -> str:
    """Returns why a pod or a claim of its ephemeral volumes would have too long a name, or ""."""
    pod_name = f"{app}-{instance.id}"
    if len(pod_name) > MAX_NAME:
        return (
            f"its pod would be named {short(pod_name, 40)} with {len(pod_name)} characters, and "
            f"the API server accepts at most {MAX_NAME}: use a shorter metadata.name"
        )
    longest = MAX_NAME - len(pod_name) - 1
    if longest >= LABEL_LENGTH:  # No volume has a longer name
        return ""
    for volume in maps_of(template.spec.get("volumes")):
        if "ephemeral" in volume and len(volume["name"]) > longest:
            return (
                f"template {quoted(template.name)}: the claim of the ephemeral volume "
                f"{quoted(volume['name'])} would be named POD-VOLUME with more than {MAX_NAME} "
                "characters: use a shorter name for the volume"
            )
    return ""


_CUTTING = (
    "; or install the admission policy tapp-lean-pods, which cuts that copy, and then delete one "
    "pod yourself"
)


class _Sizes:
    """Sizes of new pods' annotations, which include Metacontroller's copy of the pod.

    The admission policy `tapp-lean-pods` cuts that copy. That it does shows in the newest pod of
    the TApp. Where that pod does not show it, or a pod that was asked for does not come to be, the
    copy counts: a doubt is no deletion.
    """

    def __init__(self, world: World, claims: Claims, options: Options, now: float) -> None:
        self._world, self._claims, self._now = world, claims, now
        self._new = NewPods(world.tapp, options.toleration_seconds)
        self._known = dict[tuple[object, ...], str]()
        self._is_cut: bool | None = None

    def problem_of(self, instance: Instance, template: Template) -> str:
        """Returns why an instance's new pod would be too large, or "" if it would not be."""
        if template.bulk.is_small:
            return ""
        volumes = self._claims.of(instance.made)
        # Two pods of one template differ in the number, and in what else an instance has.
        failures = self._world.tapp.status.failures.get(str(instance.id), 0)
        digits = len(str(instance.id)), len(str(failures))
        key = (id(template), *digits, instance.service_name, *volumes)
        if key not in self._known:
            self._known[key] = self._problem_of(instance, template, volumes)
        return self._known[key]

    def _problem_of(self, instance: Instance, template: Template, volumes: dict[str, str]) -> str:
        count, name = self._new.annotation_bytes, f"template {quoted(template.name)}"
        bare = count(instance, template, volumes, cut=True)
        if bare > MOST_ANNOTATIONS:
            return (
                f"{name}: the annotations of a pod would have {bare} bytes, with Metacontroller's "
                f"copy of them, and the API server accepts at most {MOST_ANNOTATIONS}: "
                "make the annotations of the template shorter"
            )
        whole = count(instance, template, volumes, cut=False)
        if whole <= MOST_ANNOTATIONS or (whole <= MOST_CUT and self._cut()):
            return ""
        return (
            f"{name}: the annotations of a pod would have {whole} bytes, because Metacontroller "
            "keeps a copy of the pod there, and the API server accepts at most "
            f"{MOST_ANNOTATIONS}: make the template smaller, for example by a ConfigMap"
            + (_CUTTING if whole <= MOST_CUT else "")
        )

    def _cut(self) -> bool:
        if self._is_cut is None:
            asked = decode_since(self._world.tapp.status.not_created, self._now)
            late = any(
                id not in self._world.pods and self._now - seconds(since) >= TROUBLE_AFTER
                for id, since in asked.items()
            )
            pods = self._world.pods.values()
            newest = max((pod.created for pod in pods), default="")
            shown = [pod.spec.lean for pod in pods if pod.created == newest]
            self._is_cut = bool(shown) and all(shown) and not late
        return self._is_cut


class _Mounts:
    """Mounts without a volume, as far as the service can see.

    Admission may add volumes. That it does shows in pods that were admitted: they mount a volume
    that was not asked for. Then the API server has the word: a doubt is no refusal.
    """

    def __init__(self, world: World, recorded: Recorded, claims: Claims) -> None:
        self._world, self._recorded, self._claims = world, recorded, claims
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
            self._added = set()
            for id, pod in self._world.pods.items():
                if not self._added.issuperset(pod.spec.added):
                    self._added.update(_added(id, pod, self._recorded))
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
