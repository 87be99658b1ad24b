"""The input of a sync: the TApp with its children, and the operator's options."""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final

from msgspec import Raw

from tapp.declared.lookup import Templates
from tapp.declared.model import TApp
from tapp.kube.objects import ClaimObject, RevisionObject
from tapp.kube.tolerations import SECONDS
from tapp.pod.manifest import Manifest
from tapp.pod.pod import Pod
from tapp.words.kinds import Kind


@dataclass(frozen=True)
class Options:
    """The operator's settings for all TApps; `hooks.service.settings` reads them from the
    environment.
    """

    # True to keep finished pods until all instances of the TApp have finished
    delete_pod_after_app_finish: bool = True
    # Seconds for which the cluster's pods tolerate a not-ready or unreachable node by default
    toleration_seconds: int = SECONDS
    lost_node_seconds: int = 300  # seconds of silence after which a node is lost (`forceDeletePod`)
    unschedulable_seconds: int = 300  # seconds after which a pod without a node is trouble
    start_seconds: int = 600  # seconds after which a container that has not started is trouble
    max_new_pods_bytes: int = 32 << 20  # most estimated bytes of new pods and updates in a response
    # Most pullers of a TApp at the same time: pods that pull images before updates (`prePull`)
    max_pullers: int = 10
    pull_seconds: int = 600  # seconds that updates wait for a puller that does not start
    resize: bool = False  # True if the service may resize pods (`resources: InPlace`)
    # The small image of the container in a puller, which only waits
    puller_image: str = "registry.k8s.io/pause:3.10.1"


@dataclass(frozen=True)
class Declared:
    """The kinds of children that the CompositeController manages in addition to pods and claims.

    They depend on the components that the operator has installed.
    """

    # True if ControllerRevisions are children that Metacontroller never updates (`OnDelete`)
    revisions: bool = False
    growing_claims: bool = False  # True if Metacontroller updates claims (`InPlace`)
    # Which of the other kinds, such as Services, are children that are updated (`InPlace`)
    plain: Set[Kind] = frozenset()


NOTHING_MORE: Final = Declared()


@dataclass
class World:
    """The content of a sync request: the TApp and its children, parsed into Python objects."""

    tapp: TApp
    templates: Templates  # the templates of its spec
    pods: Mapping[int, Pod] = field(default_factory=dict)  # instance number -> pod
    foreign: list[Pod] = field(default_factory=list)  # pods whose name is not one of an instance
    claims: Mapping[str, ClaimObject] = field(default_factory=dict)  # claim name -> claim
    # Claim name -> JSON that leaves the claim as it is (`tapp/storage/unchanged_claims.py`)
    unchanged_claims: Mapping[str, Raw] = field(default_factory=dict)
    namespace_uid: str | None = None  # uid of the TApp's Namespace; None if the request lacks it
    # ControllerRevision name -> ControllerRevision
    revisions: Mapping[str, RevisionObject] = field(default_factory=dict)
    declared: Declared = NOTHING_MORE
    # StorageClass name -> whether claims of it may grow; None if the request has no StorageClass
    storage_classes: Mapping[str, bool] | None = None
    pullers: Mapping[str, Pod] = field(
        default_factory=dict
    )  # pod name -> puller, a pod of this service that pulls images before updates
    # Kind -> name -> child, for the kinds in `PLAIN`, such as Services
    plain: Mapping[Kind, Mapping[str, Manifest]] = field(default_factory=dict)
    # Pod name -> labels, annotations and spec, for the few pods that are written or compared
    manifests: Mapping[str, Manifest] = field(default_factory=dict)
