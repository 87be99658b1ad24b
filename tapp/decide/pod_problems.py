"""Finds why no pod could be created from an instance's template, while the old pod still exists.

If such an instance lost its pod, it would not get another one. So it keeps its pod until a user
corrects the spec (docs/invalid-templates.md). An instance without a pod has nothing to lose. So its
pod is requested, unless the API server would certainly refuse it: only the API server knows what
admission adds.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tapp.decide.instances import Instance, PodProblems
from tapp.decide.new_pod import NewPods
from tapp.declared.claims_and_service import claim_templates
from tapp.declared.templates import Template, claim_name
from tapp.kube.limits import MOST_ANNOTATIONS, MOST_CUT
from tapp.kube.names import LABEL_LENGTH, MAX_NAME, is_dns_label
from tapp.kube.parts import maps_of
from tapp.pod.pod import Pod
from tapp.pod.trouble import TROUBLE_AFTER
from tapp.storage.claims import Claims
from tapp.storage.records import Records
from tapp.words.notes import decode_since
from tapp.words.quoted import quoted, short
from tapp.words.times import seconds
from tapp.words.vocabulary import DEFAULT_TEMPLATE
from tapp.world import Options, World


@dataclass
class CreationProblems:
    """The instances whose pod could not be created from its template, with the reasons."""

    # Instance -> why no pod could be created from its template. For an instance without a pod this
    # is only a guess, because admission may complete the pod.
    new_pod: dict[int, str] = field(default_factory=dict)
    # Instance without a pod -> why its pod is not requested in this sync
    blocked: dict[int, str] = field(default_factory=dict)
    # Instance -> why its existing pod cannot be updated to its template either
    any_pod: dict[int, str] = field(default_factory=dict)
    # Sentences about templates that mount volumes which only existing claims provide
    claims_alone: list[str] = field(default_factory=list)

    def of(self, instance: Instance) -> PodProblems | None:
        """Returns the problems of an instance; None if its pod can be created."""
        found = (self.blocked if instance.pod is None else self.new_pod).get(instance.id, "")
        return PodProblems(found, self.any_pod.get(instance.id, "")) if found else None


def find_problems(
    world: World, records: Records, instances: Iterable[Instance], options: Options, now: float
) -> CreationProblems:
    """Returns the instances whose pod could not be created from its template, with the reasons.

    Only instances that should run and have a template are checked.

    Args:
        world: the TApp with its children.
        records: the templates in the history.
        instances: all instances of the TApp.
        options: the operator's settings.
        now: the time of this sync, in seconds since the epoch.
    """
    spec, found = world.tapp.spec, CreationProblems()
    claims = Claims(world)
    mounts = _Mounts(world, records, claims)
    sizes = _Sizes(world, claims, options, now)
    names = [claim_name(each) for each in spec.volume_claim_templates]
    doubled = next((name for name, count in Counter(names).items() if count > 1), "")
    app = world.tapp.metadata.name
    # If the longest name of a pod fits everywhere, all names do.
    names_fit = is_dns_label(f"{app}-{max(world.tapp.spec.replicas - 1, 0)}")
    alike = names_fit and not names
    dying = {n for n, claim in world.claims.items() if claim.metadata.deletion_timestamp}
    alone: dict[str, str] = {}
    for instance in instances:
        template = instance.template
        if not instance.should_run or template is None:
            continue
        if alike and template.suits_all and instance.history is None and instance.pod is not None:
            continue  # nothing that the instance has of its own could prevent its next pod
        why = _own_problem(app, instance, template, claims)
        if instance.pod is None:
            # The scheduler places no pod with a claim that is being deleted (`podHasPVCs`).
            going = dying.intersection(claims.of(instance.source).values()) if dying else ()
            if blocked := (
                f"claim {min(going)} is being deleted; the pod is created when it is gone"
                if going
                else why
            ):
                found.blocked[instance.id] = blocked
        # The problems below are not certain: admission may add an image, a volume, or cut
        # Metacontroller's copy. They keep a pod that exists; a pod that is missing is tried.
        no_image = (
            "" if _has_images_of_admission(instance.pod, template) else template.missing_image
        )
        if any_pod := no_image or sizes.problem_of(instance, template):
            found.any_pod[instance.id] = any_pod
            why = why or any_pod
        if doubled:
            why = why or f"spec.volumeClaimTemplates has {quoted(doubled)} twice"
        if template.mounts and (lacking := mounts.lacking(template)):
            why = why or mounts.without_claim(instance, template, lacking)
            # A kept instance runs a recorded template; that is no mistake in the current spec.
            if not why and not instance.kept:
                alone[template.name] = (
                    f"{_mounts(template, lacking, min(lacking))}, which is neither a volume nor a "
                    "claim template. Instances that have a claim of that name keep using it, and "
                    "other instances get no pod"
                )
        if why:
            found.new_pod[instance.id] = why
    found.claims_alone = [*alone.values()]
    return found


def _has_images_of_admission(pod: Pod | None, template: Template) -> bool:
    """Returns True if the pod has all images that its template lacks, so that admission adds them.

    Returns False if `pod` is None or if the template lacks no image.
    """
    if pod is None or not template.missing_image:
        return False
    # The API server refuses a pod with a container that has no image. So if a pod has an image that
    # its template lacked, admission has set that image, and will do so again.
    spec, lists = template.spec, ("containers", "initContainers")
    unnamed = [
        item["name"] for each in lists for item in spec.get(each, []) if not item.get("image")
    ]
    return bool(unnamed) and all(
        pod.spec.images.get(name) and not pod.spec.template_images.get(name) for name in unnamed
    )


def _own_problem(app: str, instance: Instance, template: Template, claims: Claims) -> str:
    """Returns why the number or the values of an instance prevent its pod or its claims.

    Other instances with the same template may have no such problem. Returns an empty string if
    nothing prevents pod and claims.

    Args:
        app: the name of the TApp.
        instance: the instance.
        template: the template of the instance's next pod.
        claims: finds the claims of the instance, and the reasons why a claim cannot be created.
    """
    why = _host_problem(app, instance) or _name_problem(app, instance, template)
    source = instance.source
    if not why and (claims.differ or source.recorded is not None):
        why = claims.problem_of(source)
    return why or claims.refused(source)


def _host_problem(app: str, instance: Instance) -> str:
    """Returns why the pod's name cannot be a host name, or an empty string if there is no problem.

    A pod needs a host name only if the TApp has `spec.serviceName`. `app` is the name of the TApp.
    """
    pod_name = f"{app}-{instance.id}"
    if not instance.service_name or is_dns_label(pod_name):
        return ""
    return (
        f"spec.serviceName requires pod names that are host names, and {quoted(pod_name)} is not: "
        "a host name has at most 63 letters, digits and '-'"
    )


def _name_problem(app: str, instance: Instance, template: Template) -> str:
    """Returns why the API server would refuse a name that is too long, or an empty string.

    The name of the pod and the names of its ephemeral volumes' claims are checked. A name may have
    at most `MAX_NAME` characters. `app` is the name of the TApp, and `template` is the template of
    the pod.
    """
    pod_name = f"{app}-{instance.id}"
    if len(pod_name) > MAX_NAME:
        return (
            f"its pod would be named {short(pod_name, 40)} with {len(pod_name)} characters, and "
            f"the API server accepts at most {MAX_NAME}: use a shorter metadata.name"
        )
    # The claim of an ephemeral volume is named POD-VOLUME (`ephemeral.VolumeClaimName`).
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
    """Checks that the annotations of a new pod are not too large for the API server.

    The annotations include Metacontroller's copy of the pod. The admission policy `tapp-lean-pods`
    removes most of that copy. The newest pod of the TApp shows whether the policy is installed. In
    two cases the whole copy counts: if no pod shows the policy, and if a requested pod does not
    appear. It is better to keep a pod than to delete one that cannot be created again.
    """

    def __init__(self, world: World, claims: Claims, options: Options, now: float) -> None:
        self._world, self._claims, self._now = world, claims, now
        self._new = NewPods(world.tapp, options.toleration_seconds)
        self._known = dict[tuple[object, ...], str]()
        self._is_cut: bool | None = None

    def problem_of(self, instance: Instance, template: Template) -> str:
        """Returns why the annotations of a new pod would be too large for the API server.

        The API server accepts at most `MOST_ANNOTATIONS` bytes for all annotations of a pod
        together. Returns an empty string if they are small enough. `template` is the template of
        the new pod.
        """
        if template.bulk.is_small:
            return ""
        volumes = self._claims.of(instance.source)
        # The sizes of two pods of one template differ only if one of these values differs.
        failures = self._world.tapp.status.failures.get(str(instance.id), 0)
        digits = len(str(instance.id)), len(str(failures))
        key = (id(template), *digits, instance.service_name, *volumes)
        if key not in self._known:
            self._known[key] = self._problem_of(instance, template, volumes)
        return self._known[key]

    def _problem_of(self, instance: Instance, template: Template, volumes: dict[str, str]) -> str:
        """Computes why the annotations of a new pod would be too large, or returns an empty string.

        The arguments are those of `problem_of`. In addition, `volumes` maps the names of the pod's
        volumes to the names of their claims.
        """
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
        """Returns True if the policy `tapp-lean-pods` cuts Metacontroller's copy of new pods."""
        if self._is_cut is None:
            requested = decode_since(self._world.tapp.status.not_created, self._now)
            refused = any(
                id not in self._world.pods and self._now - seconds(since) >= TROUBLE_AFTER
                for id, since in requested.items()
            )
            # Older pods may have been created before the policy was installed.
            pods = self._world.pods.values()
            newest = max((pod.created for pod in pods), default="")
            shown = [pod.spec.lean for pod in pods if pod.created == newest]
            self._is_cut = bool(shown) and all(shown) and not refused
        return self._is_cut


class _Mounts:
    """Finds volumes that containers mount although neither the template nor a claim provides them.

    Admission may add such volumes to pods. If existing pods have a volume that their template
    lacks, a new template may mount a volume of that name, too.
    """

    def __init__(self, world: World, records: Records, claims: Claims) -> None:
        self._world, self._records, self._claims = world, records, claims
        self._templates = claim_templates(world.tapp.spec)
        self._lacking = dict[int, dict[str, str]]()
        self._added: set[str] | None = None
        self._texts = dict[str, str]()

    def lacking(self, template: Template) -> dict[str, str]:
        """Returns volume name -> container that mounts it, for volumes that nothing provides.

        A volume may come from the template, from a claim template of the spec, or from admission.
        """
        found = self._lacking.get(id(template))
        if found is None:
            names = template.mounts.keys() - self._templates.keys()
            names -= self._added_names() if names else set()
            found = {name: template.mounts[name] for name in sorted(names)}
            self._lacking[id(template)] = found
        return found

    def without_claim(self, instance: Instance, template: Template, lacking: dict[str, str]) -> str:
        """Returns why an instance gets no pod, or "" if its claims provide all lacking volumes.

        Args:
            instance: the instance.
            template: the template of its next pod.
            lacking: the result of `lacking` for this template.
        """
        claims, source = self._claims, instance.source
        own = claims.of(source)
        gone = (
            name
            for name in lacking
            if name not in own
            or (claims.template_of(name, source.recorded) is None and not self._stays(own[name]))
        )
        if (missing := next(gone, None)) is None:
            return ""
        no = "which is neither a volume, nor a claim template, nor a claim that the instance has"
        text = f"{_mounts(template, lacking, missing)}, {no}"
        return self._texts.setdefault(text, text)  # instances share one object: it may be long

    def _stays(self, name: str) -> bool:
        """Returns True if a claim of this name exists and is not being deleted.

        A claim that is being deleted will be gone together with the pod that uses it.
        """
        claim = self._world.claims.get(name)
        return claim is not None and claim.metadata.deletion_timestamp is None

    def _added_names(self) -> set[str]:
        """Returns the names of all volumes that admission has added to pods of the TApp."""
        if self._added is None:
            self._added = set()
            # Reading a record takes time, so it is read only for a pod that may add names.
            for id, pod in self._world.pods.items():
                if not self._added.issuperset(pod.spec.added):
                    self._added.update(_added(id, pod, self._records))
        return self._added


def _added(id: int, pod: Pod, records: Records) -> set[str]:
    """Returns the names of volumes that admission has added to a pod.

    If the history has the pod's template, only volumes that this template mounts and does not
    define are included.

    Args:
        id: the number of the instance.
        pod: its pod.
        records: the templates in the history.
    """
    revision = "" if pod.foreign else records.of_pod(pod, id, DEFAULT_TEMPLATE, ())
    template = records.template(revision, id, DEFAULT_TEMPLATE) if revision else None
    names = {*pod.spec.added}
    return names if template is None else names & template.mounts.keys()


def _mounts(template: Template, lacking: dict[str, str], name: str) -> str:
    """Returns the beginning of a message: which container of which template mounts volume `name`.

    `lacking` maps the name of a volume to the container that mounts the volume.
    """
    where = f"template {quoted(template.name)}: container {quoted(lacking[name])}"
    return f"{where} mounts {quoted(name)}"
