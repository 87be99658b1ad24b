"""`kubectl tapp migrate`: runs the migration of TApps from the old tapp-controller."""

from collections.abc import Sequence
from typing import Annotated

import typer

from kubectl_tapp.base.errors import Exit, UsageError
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.commands.complete import names
from kubectl_tapp.commands.options import Yes, argument

Tapps = Annotated[
    list[str] | None,
    argument(
        "[TAPP]...",
        "Names of the TApps to migrate (default: all in the namespace).",
        autocompletion=names,
    ),
]
All = Annotated[
    bool, typer.Option("-A", "--all-namespaces", help="Migrate the TApps of all namespaces.")
]
KeepClaims = Annotated[
    bool,
    typer.Option(
        "--keep-claims",
        help="Keep the claims when their TApp is deleted, by adding their Namespace as a second "
        "owner of each claim.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Migrate even if a check fails.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the plan and write nothing.")]


def migrate(  # noqa: PLR0913 - typer makes one option of each parameter
    session: Session,
    tapps: Tapps = None,
    all_namespaces: All = False,
    *,
    keep_claims: KeepClaims = False,
    force: Force = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Move TApps from the old tapp-controller to Metacontroller. No pod restarts."""
    from migration.__main__ import main  # noqa: PLC0415
    from migration.kubectl import Finished  # noqa: PLC0415

    if tapps and all_namespaces:
        raise UsageError("name TApps, or ask for all namespaces, not both")
    if yes:
        session.ignore_closed_output()
    switches = {
        "--all-namespaces": all_namespaces, "--keep-claims": keep_claims, "--force": force,
        "--apply": not dry_run,
    }  # fmt: skip
    arguments = [*(tapps or []), *(name for name, given in switches.items() if given)]
    if "namespace" in session.global_options and not all_namespaces:
        arguments.append(f"--namespace={session.global_options['namespace']}")

    # The migration repeats these options in the commands that it suggests. For its own calls of
    # kubectl, the session adds all options.
    shown = [each for each in ("kubeconfig", "context") if each in session.global_options]
    arguments += [f"--{each}={session.global_options[each]}" for each in shown]

    def confirm(count: int) -> None:
        session.say(f"{count} changes to make; no pod restarts.")
        session.confirm(yes=yes)

    def run(command: Sequence[str]) -> Finished:
        _, *rest = command  # The session knows the program's name
        done = session.cluster.call(rest)
        return Finished(done.code, done.out, done.err)

    return Exit.FAILED if main(arguments, run, session.say, confirm) else Exit.DONE
