"""`kubectl tapp restart`: replaces pods, or restarts containers in their pods.

To restart all instances of a template, the command sets kubectl's restart annotation in the
template. The service then replaces the pods within the budgets. `evictions.py` restarts chosen
instances, and carries out `--in-place`.
"""

from typing import Annotated

import typer

from kubectl_tapp.base.errors import UsageError
from kubectl_tapp.commands.options import Ids
from kubectl_tapp.commands.verb_options import CauseOption, Verb, template_option
from tapp.words.times import written

_Template = Annotated[
    str | None,
    template_option("Restart only the instances that run this template (default: all instances)."),
]
_InPlace = Annotated[
    bool,
    typer.Option(
        "--in-place", help="Restart the containers in their pods instead of replacing the pods."
    ),
]
_Container = Annotated[
    str | None,
    typer.Option(
        "-c",
        "--container",
        metavar="NAME",
        help="With --in-place, restart only this container (default: all containers).",
    ),
]


def restart(  # noqa: PLR0913, PLR0917 - its options
    verb: Verb,
    ids: Ids = None,
    template: _Template = None,
    in_place: _InPlace = False,
    container: _Container = None,
    cause: CauseOption = None,
) -> None:
    """Restart instances by replacing their pods, within the budgets.

    Named instances are evicted one after the other, each after the one before is available again.
    Without names the service restarts all instances, or those that run --template. With --in-place
    the pods stay, and their containers restart with the same image.
    """
    from kubectl_tapp.commands import evictions  # noqa: PLC0415 - it costs start time

    if ids and template:
        raise UsageError("give either instances or --template")
    if container is not None and not in_place:
        raise UsageError("-c needs --in-place: a new pod starts all containers")
    if ids:
        plan = verb.plan()
        pods = {id: evictions.restartable_pod(plan, id) for id in verb.ids(ids)}
        if in_place:
            evictions.restart_instances(verb, pods, container)
        else:
            evictions.evict_one_by_one(verb, pods)
        return

    names = [template] if template else verb.edits.used_templates(verb.spec)
    how = f" --template {template}" if template else ""
    if in_place:
        edited = evictions.restart_templates(verb, names, container)
        how += " --in-place" + (f" -c {container}" if container else "")
    else:
        edited = verb.edits.restarted(verb.tapp, names, written(verb.session.now()))
    verb.do(verb.with_cause(edited, cause, f"restart {verb.name}{how}"))
