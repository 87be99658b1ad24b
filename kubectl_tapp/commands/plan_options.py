"""The options of `kubectl tapp plan`."""

from dataclasses import dataclass
from typing import Annotated

import typer

from kubectl_tapp.commands.complete import names
from kubectl_tapp.commands.options import Output, argument, option, without_resource_prefix

_Texts = list[str] | None


@dataclass(frozen=True)
class PlanOptions:
    """The options of `plan`: the TApp, its edit, and the parts of the forecast to print."""

    name: Annotated[
        str | None,
        argument(
            "[NAME]",
            "The TApp; not needed with a file.",
            autocompletion=names,
            callback=without_resource_prefix,
        ),
    ] = None
    filename: Annotated[
        str | None, option("-f", "--filename", metavar="FILE", help="The edited TApp; - is stdin.")
    ] = None
    from_: Annotated[
        str | None, option("--from", metavar="FILE", help="Take this as running; ask no cluster.")
    ] = None
    image: Annotated[_Texts, option("--image", metavar="CONTAINER=IMAGE", help="Set it.")] = None
    template: Annotated[
        str | None, option("-t", "--template", metavar="NAME", help="Of --image or --restart.")
    ] = None
    partition: Annotated[
        str | None,
        option("--partition", metavar="SHARE", help="So many, 3 or 30%, keep what they have."),
    ] = None
    replicas: Annotated[int | None, option("--replicas", metavar="N", help="Scale to it.")] = None
    use: Annotated[_Texts, option("--use", metavar="TEMPLATE=IDS", help="Re-template.")] = None
    kill: Annotated[_Texts, option("--kill", metavar="IDS", help="Stop.")] = None
    start: Annotated[_Texts, option("--start", metavar="IDS", help="Start.")] = None
    restart: Annotated[
        bool, typer.Option("--restart", help="New pods for all, or all of --template.")
    ] = False
    in_place: Annotated[
        bool, typer.Option("--in-place", help="With --restart: the containers, in their pods.")
    ] = False
    assume_broken: Annotated[
        _Texts, option("--assume-broken", metavar="IMAGE", help="It will not come up.")
    ] = None
    fail_if: Annotated[
        _Texts,
        option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit with 3 if it holds: recreate, delete, stuck, unavailable>2, duration>10m.",
        ),
    ] = None
    html: Annotated[
        str | None, option("--html", metavar="FILE", help="Write a page with the plan.")
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run/--no-dry-run", help="Ask the API server what it would say.")
    ] = True
    server_side: Annotated[
        bool | None,
        option(
            "--server-side/--no-server-side",
            help="How the file will be applied; else as this TApp was applied last.",
        ),
    ] = None
    force_conflicts: Annotated[
        bool, typer.Option("--force-conflicts", help="Of a server-side apply, as for kubectl.")
    ] = False
    unfold: Annotated[bool, typer.Option("--unfold", help="A line for each instance.")] = False
    output: Output = None

    @property
    def by_options(self) -> bool:
        """True if options such as `--image` describe the edit."""
        asked = (self.image, self.use, self.kill, self.start, self.restart)
        return any(asked) or (self.replicas, self.partition) != (None, None)

    @property
    def broken(self) -> tuple[str, ...]:
        """The images whose containers never become Ready in the forecast."""
        return tuple(self.assume_broken or ())
