"""Input of a sync: the TApp with its children, and the operator's choices."""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from tapp.declared.lookup import Templates
from tapp.declared.model import TApp
from tapp.kube.objects import ClaimObject, RevisionObject
from tapp.kube.tolerations import SECONDS
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.words.kinds import Kind


@dataclass(frozen=True)
class Options:
    """The operator's choices for all TApps; `hooks.service.settings` reads the environment."""

    delete_pod_after_app_finish: bool = True  # keep finished pods until the whole app has finished
    toleration_seconds: int = SECONDS  # the cluster's, for not-ready and unreachable
    lost_node_seconds: int = 300  # seconds of silence until a node is lost (`forceDeletePod`)
    unschedulable_seconds: int = 300  # until a pod without a node is trouble
    start_seconds: int = 600  # until a pod whose containers do not start is trouble
    max_new_pods_bytes: int = 32 << 20  # bytes of all that one answer writes anew, about
    max_pullers: int = 10  # how many pods of a TApp pull images at once (`prePull`)
    pull_seconds: int = 600  # how long updates wait for one that does not start
    resize: bool = False  # whether the service may resize pods (`resources: InPlace`)
    puller_image: str = "registry.k8s.io/pause:3.10.1"  # what runs in them: small, and it waits


@dataclass(frozen=True)
class Declared:
    """Rights of a hook beyond pods and claims, by the CompositeController that asks."""

    revisions: bool = False  # ControllerRevisions are children, and are never updated (`OnDelete`)
    growing_claims: bool = False  # claims are updated, too (`InPlace`)
    plain: Set[Kind] = frozenset()  # these are children, and are updated (`InPlace`)


NOTHING_MORE: Final = Declared()  # Pods and claims alone


@dataclass
class World:
    """The content of a request."""

    tapp: TApp  # the parent
    templates: Templates  # its templates, looked up by name
    pods: Mapping[int, Pod] = field(default_factory=dict)  # instance number -> pod
    foreign: list[Pod] = field(default_factory=list)  # whose name is no instance's
    claims: Mapping[str, ClaimObject] = field(default_factory=dict)  # claim name -> claim
    namespace_uid: str | None = None  # uid of the TApp's Namespace, None where the request has none
    # ControllerRevision name -> ControllerRevision
    revisions: Mapping[str, RevisionObject] = field(default_factory=dict)
    declared: Declared = NOTHING_MORE  # what the registration lets a hook do
    # StorageClass name -> whether its claims may grow; None where the request shows none at all
    storage_classes: Mapping[str, bool] | None = None
    pullers: Mapping[str, Pod] = field(default_factory=dict)  # name -> pod of ours that pulls
    # kind -> name -> child, of each kind of `PLAIN`
    plain: Mapping[Kind, Mapping[str, Manifest]] = field(default_factory=dict)
    # a pod -> its labels, annotations and spec: few are looked at
    manifest_of: Callable[[Pod], Manifest] = lambda pod: pod.manifest
