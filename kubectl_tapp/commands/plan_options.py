"""The options of `kubectl tapp plan`, and the options by which `plan` and `rehearse` describe an
edit.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from kubectl_tapp.commands.complete import names
from kubectl_tapp.commands.options import Output, argument, option, without_resource_prefix

_Texts = list[str] | None


@dataclass(frozen=True)
class EditOptions:
    """The options that describe an edit of a TApp, for commands that only forecast it."""

    name: Annotated[
        str | None,
        argument(
            "[NAME]",
            "Name of the TApp (default: the only TApp in the file).",
            autocompletion=names,
            callback=without_resource_prefix,
        ),
    ] = None
    filename: Annotated[
        str | None,
        option(
            "-f",
            "--filename",
            metavar="FILE",
            help="File with the edited TApp. - reads standard input.",
        ),
    ] = None
    from_: Annotated[
        str | None,
        option(
            "--from",
            metavar="FILE",
            help="File with the TApp before the edit. Forecasts without a cluster, as if it were "
            "running.",
        ),
    ] = None
    image: Annotated[
        _Texts,
        option(
            "--image",
            metavar="CONTAINER=IMAGE",
            help="Set the image of a container, or of all with *. Can be repeated.",
        ),
    ] = None
    template: Annotated[
        str | None,
        option(
            "-t",
            "--template",
            metavar="NAME",
            help="Template for --image or --restart (default: the default template, or all for "
            "--restart).",
        ),
    ] = None
    partition: Annotated[
        str | None,
        option(
            "--partition",
            metavar="SHARE",
            help="Keep this many instances (3 or 30%) of the rolling template at their revision. "
            "The rolling template is updateStrategy.template, or else the default template.",
        ),
    ] = None
    replicas: Annotated[
        int | None, option("--replicas", metavar="NUMBER", help="Set the number of instances.")
    ] = None
    use: Annotated[
        _Texts,
        option(
            "--use",
            metavar="TEMPLATE=IDS",
            help="Let instances run a template: v2=0,3-5. Can be repeated.",
        ),
    ] = None
    kill: Annotated[
        _Texts,
        option("--kill", metavar="IDS", help="Stop instances: 3, 0-3,7 or all. Can be repeated."),
    ] = None
    start: Annotated[
        _Texts,
        option(
            "--start",
            metavar="IDS",
            help="Start stopped instances: 3, 0-3,7 or all. Can be repeated.",
        ),
    ] = None
    restart: Annotated[
        bool,
        typer.Option(
            "--restart", help="Replace the pods of all instances, or of those that run --template."
        ),
    ] = False
    in_place: Annotated[
        bool,
        typer.Option(
            "--in-place",
            help="With --restart, restart the containers in their pods instead of replacing the "
            "pods.",
        ),
    ] = False
    assume_broken: Annotated[
        _Texts,
        option(
            "--assume-broken",
            metavar="IMAGE",
            help="Assume that containers with this image never become ready. Can be repeated.",
        ),
    ] = None
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run/--no-dry-run", help="Let the API server check the edit by dry runs."
        ),
    ] = True
    server_side: Annotated[
        bool | None,
        option(
            "--server-side/--no-server-side",
            help="If true, apply runs in the server instead of the client (default: as this TApp "
            "was applied last).",
        ),
    ] = None
    force_conflicts: Annotated[
        bool,
        typer.Option(
            "--force-conflicts",
            help="If true, server-side apply will force the changes against conflicts.",
        ),
    ] = False

    @property
    def by_options(self) -> bool:
        """True if options such as `--image` describe the edit; False if a file contains the edited
        TApp.
        """
        asked = (self.image, self.use, self.kill, self.start, self.restart)
        return any(asked) or (self.replicas, self.partition) != (None, None)

    @property
    def broken(self) -> tuple[str, ...]:
        """The images of `--assume-broken`, whose containers never become Ready in the forecast."""
        return tuple(self.assume_broken or ())


@dataclass(frozen=True)
class PlanOptions(EditOptions):
    """The options of `kubectl tapp plan`: the TApp, its edit, and the parts of the forecast to
    print.
    """

    fail_if: Annotated[
        _Texts,
        option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit with code 3 if this condition holds: recreate, in-place, create, delete, "
            "delete-claim, stuck, paused, condition, change, unavailable or duration. A limit may "
            "follow, as in unavailable>2 or duration>10m. Can be repeated.",
        ),
    ] = None
    html: Annotated[
        str | None,
        option("--html", metavar="FILE", help="Write the plan as an HTML page to this file."),
    ] = None
    unfold: Annotated[
        bool,
        typer.Option(
            "--unfold", help="Print a line for each instance instead of one for equal instances."
        ),
    ] = False
    output: Output = None
