"""The sentence about instances that a partition keeps at an older revision."""

from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import instance_list, joined


def kept_back(plan: Plan) -> str:
    """Returns a sentence on the instances that a partition keeps at an older revision.

    It names the instances, and the command with which a user continues the rollout. Returns an
    empty string if the partition keeps no instance.
    """
    instances = (case.instance for case in plan.notable)
    at = grouped((item.kept, item.id) for item in instances if item.kept)
    if not at:
        return ""
    size, meta = plan.world.tapp.spec.update_strategy.partition, plan.world.tapp.metadata
    parts = [f"{instance_list(ids)} at revision {revision}" for revision, ids in at.items()]
    return (
        f"spec.updateStrategy.partition {short(size)} keeps {joined(parts, ' revisions')}; "
        f"`kubectl tapp advance {meta.name} -n {meta.namespace}` updates them"
    )
