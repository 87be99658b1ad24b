"""The page's banner about a rollout that is stuck: one sentence, then the original messages.

`banner` is the entry point. The sentence names the cause, the instances that do not run, and the
instances that wait for them. The messages of a registry, a kubelet or the scheduler follow
unchanged.
"""

from dataclasses import dataclass

from kubectl_tapp.base.observed import Document
from kubectl_tapp.base.reading import conditions_by_type, container_statuses
from kubectl_tapp.base.words import instances_phrase
from kubectl_tapp.decide.inspection import Inspection
from kubectl_tapp.decide.progress import Progress
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import about
from tapp.words.reasons import Standing

_PULLING = ("ErrImagePull", "ImagePullBackOff")
_NORMAL = ("ContainerCreating", "PodInitializing")  # Reasons of containers that start normally
_ABSENT = ("not found", "manifest unknown", "does not exist")
_DENIED = ("unauthorized", "denied", "authentication required", "forbidden")
# Largest number of causes in the sentence, and of characters in one cause
_MAX_CAUSES, _MAX_CHARACTERS = 3, 120


@dataclass(frozen=True)
class Banner:
    """The text at the top of the page that says why a rollout is stuck; empty if it is not
    stuck.
    """

    sentence: str = ""
    words: tuple[str, ...] = ()  # the original messages as sentences, one for each cause


def banner(view: Inspection, known: Progress) -> Banner:
    """Returns the banner of a TApp; the banner is empty if the rollout may make progress.

    `known` is the progress that was computed from the same inspection.
    """
    stuck = known.stuck_reason(None) if known.answered else ""
    if not stuck:
        return Banner()
    stands = view.standings.values()
    blocked = [each for each in stands if each.standing is Standing.BLOCKED]
    waiting = [each for each in stands if each.standing.waits]
    causes = grouped((_cause(view, each.id), each.id) for each in blocked)
    parts = [
        f"{cause}; {instances_phrase(ids)} {effect[len(ids) > 1]}"
        for (cause, effect), ids in [*causes.items()][:_MAX_CAUSES]
    ]
    if len(causes) > _MAX_CAUSES:
        parts.append(f"and {len(causes) - _MAX_CAUSES} more problems")
    if blocked and waiting:
        ids = [each.id for each in waiting]
        verb, whom = ("waits" if len(ids) == 1 else "wait"), "it" if len(blocked) == 1 else "them"
        parts.append(f"{instances_phrase(ids)} {verb} for {whom}")
    elif waiting:
        briefs = grouped((each.brief, each.id) for each in waiting)
        parts += [about(ids, text) for text, ids in briefs.items()]
    texts = grouped((each.text, each.id) for each in blocked)
    words = [about(ids, text) for text, ids in texts.items()]
    return Banner("; ".join(parts) or short(stuck, _MAX_CHARACTERS), tuple(words) or (stuck,))


def instance_banner(view: Inspection, id: int) -> str:
    """Returns a sentence that says why an instance is blocked, and the effect on the instance.

    Returns "" if the instance is not blocked.
    """
    if view.standings[id].standing is not Standing.BLOCKED:
        return ""
    cause, effect = _cause(view, id)
    return f"{cause}; instance {id} {effect[0]}"


_Effect = tuple[str, str]  # The effect as a phrase after one instance number, and after several
_START, _RUN = ("does not start", "do not start"), ("does not run", "do not run")
_AVAILABLE = ("is not available", "are not available")


def _cause(view: Inspection, id: int) -> tuple[str, _Effect]:
    """Returns a phrase that says why an instance is blocked, and the effect on the instance.

    The caller has checked that the instance is blocked.
    """
    pod = view.pod(id)
    if pod is not None:
        images = _images(pod)
        for status in container_statuses(pod):
            name = str(status.get("name"))
            if text := _container_cause(status, name, images.get(name, "")):
                return text
        scheduled = conditions_by_type(pod).get("PodScheduled") or {}
        if scheduled.get("status") == "False":
            return "no node has room for the pod", _START
    brief = view.standings[id].brief or view.cases[id].decision.message
    return short(brief, _MAX_CHARACTERS), _AVAILABLE


def _container_cause(status: Document, name: str, image: str) -> tuple[str, _Effect] | None:
    """Returns the cause that the status of a container shows, and its effect; None if it shows
    none.

    `name` and `image` are the container's name and image, which the text mentions.
    """
    state = status.get("state") or {}
    waiting = state.get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "").lower()
    ended = state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    if reason in _PULLING:
        if any(each in message for each in _ABSENT):
            return f"image {image} does not exist", _START
        if any(each in message for each in _DENIED):
            return f"the registry denies access to image {image}", _START
        return f"image {image} cannot be pulled", _START
    if reason == "InvalidImageName":
        return f"{image!r} is not the name of an image", _START
    if reason == "CrashLoopBackOff" or ended.get("exitCode"):
        code = f" (exit code {ended['exitCode']})" if ended.get("exitCode") else ""
        return f"container {name} of image {image} keeps ending{code}", _RUN
    if reason and reason not in _NORMAL:
        return f"container {name} cannot be started ({reason})", _START
    return None


def _images(pod: Document) -> dict[str, str]:
    spec = pod.get("spec") or {}
    containers = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    return {str(each.get("name")): str(each.get("image", "")) for each in containers}
