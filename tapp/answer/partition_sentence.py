"""The sentence about instances that a partition keeps at an older revision."""

from tapp.plan import Plan
from tapp.words.groups import grouped
from tapp.words.quoted import short
from tapp.words.ranges import SHOWN, instance_list


def kept_back(plan: Plan) -> str:
    """Returns a sentence about the instances that a partition keeps at an older revision.

    The sentence names the instances, and the command with which a user continues the rollout.
    Returns an empty string if the partition keeps no instance.
    """
    instances = (case.instance for case in plan.notable)
    at = grouped(
        (item.kept, item.id) for item in instances if item.kept and not item.is_rolled_back
    )
    if not at:
        return ""
    size, meta = plan.world.tapp.spec.update_strategy.partition, plan.world.tapp.metadata
    parts = [f"{instance_list(ids)} at revision {revision}" for revision, ids in at.items()]
    more = f" and {len(parts) - SHOWN} more revisions" if len(parts) > SHOWN else ""
    return (
        f"spec.updateStrategy.partition {short(size)} keeps {' and '.join(parts[:SHOWN])}{more}; "
        f"`kubectl tapp advance {meta.name} -n {meta.namespace}` updates them"
    )
