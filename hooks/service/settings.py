"""The settings of the service, read from the environment and checked once at the start."""

from dataclasses import fields
from pathlib import Path

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from tapp.kube.images import is_reference
from tapp.world import Options


class Settings(BaseSettings):
    """All settings with their defaults.

    The environment variable of a setting is `TAPP_` and the name in capitals. An empty variable
    counts as not set.
    """

    model_config = SettingsConfigDict(env_prefix="TAPP_", env_ignore_empty=True, frozen=True)

    delete_pod_after_app_finish: bool = Field(
        default=True,
        description="Keep finished pods until the whole app has finished; false removes each one "
        "as soon as its end is recorded in the status.",
    )
    toleration_seconds: int = Field(
        default=300,
        ge=0,
        description="The API server's --default-not-ready-toleration-seconds, if it is not 300.",
    )
    lost_node_seconds: int = Field(
        default=300,
        ge=0,
        description="Seconds without a report after which a node counts as lost, for TApps with "
        "forceDeletePod; a TApp's annotation overrides it.",
    )
    unschedulable_seconds: int = Field(
        default=300,
        ge=0,
        description="Seconds that a pod may be without a node before its TApp is Degraded; longer "
        "than a cluster autoscaler needs for a new node.",
    )
    start_seconds: int = Field(
        default=600,
        ge=0,
        description="Seconds that a pod may take on its node until its containers have started, "
        "init containers and image pulls included, before its TApp is Degraded.",
    )
    memo_bytes: int = Field(
        default=128 * 1024 * 1024,
        ge=0,
        description="Memory, in bytes, in which a worker caches pods and specs from sync to sync: "
        "about 11 KB for each pod; 0 caches nothing.",
    )
    max_body_bytes: int = Field(
        default=256 * 1024 * 1024,
        ge=1024,
        description="The maximum size of a request; a larger one is refused with 413. 10,000 pods "
        "need about 84 MB. All requests of a worker together hold at most this many "
        "bytes; further requests are refused with 503.",
    )
    max_new_pods_bytes: int = Field(
        default=32 * 1024 * 1024,
        ge=1024,
        description="The approximate maximum number of bytes of new and changed objects in one "
        "response. The first object of each kind is sent whatever its size: pods that "
        "pull images, ControllerRevisions, created pods, pods updated in place, claims, "
        "Services. Further objects follow in later responses.",
    )
    max_pullers: int = Field(
        default=10,
        ge=1,
        description="The number of pods of one TApp that pull images at the same time, before its "
        "updates (prePull).",
    )
    pull_seconds: int = Field(
        default=600,
        ge=1,
        description="Seconds that updates wait for a pod that has to pull images and does not "
        "start; then the updates continue without it.",
    )
    puller_image: str = Field(
        default="registry.k8s.io/pause:3.10.1",
        min_length=1,
        description="The image of the container in pods that pull images: small, with a process "
        "that waits. Most nodes have the default image already, for their sandboxes.",
    )
    body_seconds: float = Field(
        default=10,
        gt=0,
        le=600,
        description="Seconds until the body of a request has to be complete; otherwise the "
        "response is 408. The client has the same time to read the response.",
    )
    pace_seconds: float = Field(
        default=1.0,
        ge=0,
        le=5,
        description="The longest delay of a sync of a large TApp after its last response; events "
        "during the delay cause one sync only. 0: no delay.",
    )
    pace_pod_seconds: float = Field(
        default=0.002,
        ge=0,
        le=1,
        description="The delay for each pod of the TApp. TApps with fewer than 50 pods are not "
        "delayed, nor are edits and deletions.",
    )
    auth_token_file: Path | None = Field(
        default=None,
        description="File with the accepted bearer tokens, one per line; read again when it "
        "changes.",
    )
    events: bool = Field(
        default=False,
        description="Write what happens to a TApp as Events; needs the component events.",
    )
    resize: bool = Field(
        default=False,
        description="Resize running pods of TApps with resources: InPlace; needs "
        "the component resize.",
    )
    events_account: Path = Field(
        default=Path("/var/run/secrets/kubernetes.io/serviceaccount"),
        description="Directory with token and ca.crt of the service account that writes Events and "
        "resizes pods.",
    )
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR.")

    @field_validator("log_level")
    @classmethod
    def _known_level(cls, value: str) -> str:
        level = value.upper()
        if level not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
            raise ValueError("must be DEBUG, INFO, WARNING or ERROR")
        return level

    @field_validator("puller_image")
    @classmethod
    def _valid_image(cls, value: str) -> str:
        if not is_reference(value):
            raise ValueError("must be an image, such as registry.example.com/pause:3.10.1")
        return value

    @property
    def options(self) -> Options:
        """Returns the settings that decisions of the service depend on."""
        return Options(**{each.name: getattr(self, each.name) for each in fields(Options)})
