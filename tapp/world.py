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
    """The operator's choices for all TApps; `hooks.service.settings` reads the environment.

    Attributes:
        delete_pod_after_app_finish: keep finished pods until the whole app has finished.
        toleration_seconds: the cluster's default for the not-ready and unreachable tolerations.
        lost_node_seconds: after how many seconds of silence a node is lost (`forceDeletePod`).
        max_new_pods_bytes: bytes of all that one answer writes anew, about.
        max_pullers: how many pods of a TApp pull images at once (`prePull`).
        pull_seconds: how long updates wait for one that does not start.
        resize: whether the service may resize pods (`resources: InPlace`).
        puller_image: what runs in them: a small image whose process waits.
    """

    delete_pod_after_app_finish: bool = True
    toleration_seconds: int = SECONDS
    lost_node_seconds: int = 300
    max_new_pods_bytes: int = 32 << 20
    max_pullers: int = 10
    pull_seconds: int = 600
    resize: bool = False
    puller_image: str = "registry.k8s.io/pause:3.10.1"


@dataclass(frozen=True)
class Declared:
    """Rights of a hook beyond pods and claims, by the CompositeController that asks.

    Attributes:
        revisions: ControllerRevisions are children, and are never updated (`OnDelete`).
        growing_claims: claims are updated, too (`InPlace`).
        plain: these are children, and are updated (`InPlace`).
    """

    revisions: bool = False
    growing_claims: bool = False
    plain: Set[Kind] = frozenset()


NOTHING_MORE: Final = Declared()
"""Pods and claims alone."""


@dataclass
class World:
    """The content of a request.

    Attributes:
        tapp: the parent.
        templates: its templates, looked up by name.
        pods: instance number -> pod.
        foreign: pods of this TApp whose name is no instance's.
        claims: claim name -> claim.
        namespace_uid: uid of the TApp's Namespace, None where the request has none.
        revisions: ControllerRevision name -> ControllerRevision.
        declared: what the registration lets a hook do.
        storage_classes: StorageClass name -> whether its claims may grow; None where the request
            shows none at all.
        pullers: name -> pod of ours that pulls images on a node.
        plain: kind -> name -> child, of each kind of `PLAIN`.
        manifest_of: a pod -> its labels, annotations and spec: few are looked at.
    """

    tapp: TApp
    templates: Templates
    pods: Mapping[int, Pod] = field(default_factory=dict)
    foreign: list[Pod] = field(default_factory=list)
    claims: Mapping[str, ClaimObject] = field(default_factory=dict)
    namespace_uid: str | None = None
    revisions: Mapping[str, RevisionObject] = field(default_factory=dict)
    declared: Declared = NOTHING_MORE
    storage_classes: Mapping[str, bool] | None = None
    pullers: Mapping[str, Pod] = field(default_factory=dict)
    plain: Mapping[Kind, Mapping[str, Manifest]] = field(default_factory=dict)
    manifest_of: Callable[[Pod], Manifest] = lambda pod: pod.manifest
