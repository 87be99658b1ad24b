"""A pod as it is remembered: with what time cannot change worked out, and without the means to.

Most pods of a request are the same as in the one before, and most of them serve and have served for
long. Of those the rules ask three things again and again: whether their update is over, since when
they serve, and when they had been probed. What these rest on would take a fifth more memory for
each pod, and asking anew 4 to 10 us for each pod of each sync (measured).
"""

from typing import Any

import msgspec

from tapp.kube.objects import InPlaceRecord, RanImage
from tapp.pod.availability import probed_at, since
from tapp.pod.gate import has_closed_gate
from tapp.pod.inplace import is_over
from tapp.pod.pod import Pod


def condensed(pod: Pod) -> Pod:
    """The same pod for all rules.

    Conditions go where it runs and is Ready, of which they say nothing more, unless one of our
    gates is closed or the pod is resized. Of the record of an update that is over only the ids of
    its containers stay, and those only where a container has restarted: they tell a restart by the
    update from one by itself.
    """
    facts: dict[str, Any] = {"since": since(pod), "probed_at": probed_at(pod)}
    if pod.ready and pod.phase == "Running" and not has_closed_gate(pod):
        is_resized = b'"PodResize' in pod.conditions_text
        facts["conditions_text"] = pod.conditions_text if is_resized else b""
    if is_over(pod):
        facts |= {"update_over": True, "runs_wanted": (), "kubelet_wrote": "", "spec_written": ""}
        facts["record"] = _ids(pod.record) if pod.restarts and pod.record is not None else None
    return msgspec.structs.replace(pod, **facts)


def _ids(record: InPlaceRecord) -> InPlaceRecord:
    containers = {name: RanImage(ran.id) for name, ran in record.containers.items()}
    return InPlaceRecord(containers=containers)
