"""`python -m migration`: prints the changes of a move to Metacontroller; `--apply` makes them.

Exit codes:

- 0: all changes were made or printed, or nothing had to be changed.
- 1: a change failed, or a person has to decide.
- 2: the command ended before it tried to change anything.
"""

from __future__ import annotations  # for Python 3.9

import argparse
import sys
from collections.abc import Callable, Sequence

from migration.guards import active_composite, old_controller, old_webhook
from migration.kubectl import Json, Kubectl, KubectlError, Runner, run
from migration.moves import CLAIMS, PODS, Change, Move, plan_move, unprotected

Say = Callable[[str], None]
Confirm = Callable[[int], None]

TAPPS = "tapps.apps.tkestack.io"
_MAX_TRIES = 3


class RefusedError(Exception):
    """The command ends before it has written anything; the message says why and what to do."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m migration",
        description="Moves TApps from the old tapp-controller to Metacontroller: adds the label by "
        "which Metacontroller finds their pods and claims. No pod restarts.",
        epilog="Without --apply nothing is written. The whole procedure: docs/migration.md",
    )
    parser.add_argument(
        "tapps", nargs="*", metavar="TAPP", help="name of a TApp to move (default: all)"
    )
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", default="", help="default: kubectl's current one")
    scope.add_argument("-A", "--all-namespaces", action="store_true")
    parser.add_argument("--kubeconfig", default="", metavar="FILE")
    parser.add_argument("--context", default="", metavar="NAME")
    parser.add_argument(
        "--apply", action="store_true", help="make the changes (default: only print them)"
    )
    parser.add_argument(
        "--keep-claims",
        action="store_true",
        help="add the Namespace as a second owner of claims, so that they outlive their TApp",
    )
    parser.add_argument(
        "--force", action="store_true", help="write although a check has found a problem"
    )
    return parser


def main(
    arguments: Sequence[str] | None = None,
    runner: Runner = run,
    say: Say = print,
    confirm: Confirm | None = None,
) -> int:
    """Runs the command and returns its exit code.

    Args:
        arguments: the arguments of the command line; None reads them from the process.
        runner: runs kubectl.
        say: prints a line.
        confirm: asks the user before anything is written; None asks nobody. With `--apply`, it is
            called with the number of changes after all changes were printed. An exception that it
            raises ends the command.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.tapps and options.all_namespaces:
        parser.error("name TApps, or ask for all namespaces, not both")
    kubectl = Kubectl(options.kubeconfig, options.context, runner)
    try:
        return _run(kubectl, options, say, confirm)
    except (RefusedError, KubectlError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _run(kubectl: Kubectl, options: argparse.Namespace, say: Say, confirm: Confirm | None) -> int:
    tapps = _selected_tapps(kubectl, options)
    if not tapps:
        _check_cluster(kubectl, options, [], say)
        say("No TApp found. -n NAMESPACE looks in another namespace, -A in all namespaces.")
        return 0
    moves, unprotected_claims, unread = _plan(kubectl, tapps, options.keep_claims, say)
    for move in moves:
        _print_move(move, changes=confirm is not None or not options.apply, say=say)
    changes = [change for move in moves for change in move.changes]
    in_the_way = sum(len(move.in_the_way) for move in moves)
    _check_cluster(kubectl, options, moves, say)
    if unprotected_claims and not options.keep_claims:
        say(
            f"note: {_count(unprotected_claims, 'claim')} would be deleted together with their "
            "TApp, which is their only owner. To keep them in that case, add --keep-claims, which "
            "makes the Namespace a second owner"
        )
    if options.apply and changes and confirm is not None:
        confirm(len(changes))
    failed = _apply(kubectl, changes, say) if options.apply else 0
    say("")
    if options.apply:
        say(f"{len(changes) - failed} of {_count(len(changes), 'change')} made.")
    else:
        say(f"Dry run: {_count(len(changes), 'change')} to make; --apply makes them.")
    if not options.all_namespaces:
        say(
            "Other namespaces were not checked. The CompositeController takes over every TApp of "
            "the cluster, so run this command with -A before you install the CompositeController."
        )
    if in_the_way:
        say(
            f"{_count(in_the_way, 'problem')} (see PROBLEM above): solve "
            f"{'it' if in_the_way == 1 else 'them'} before you install the CompositeController."
        )
    if failed or unread:
        say(
            f"{_count(failed + unread, 'failure')}: run the command again; it does not repeat "
            "changes that were made."
        )
    return 1 if failed or unread or in_the_way else 0


def _selected_tapps(kubectl: Kubectl, options: argparse.Namespace) -> list[Json]:
    try:
        tapps = kubectl.list(TAPPS, None if options.all_namespaces else options.namespace)
    except KubectlError as error:
        if error.reason == "NoSuchKind":
            raise RefusedError(
                "the cluster has no CustomResourceDefinition of TApps: check --context. If the old "
                "definition was deleted, its TApps were deleted as well"
            ) from None
        raise
    names = {tapp["metadata"]["name"] for tapp in tapps}
    missing = [name for name in options.tapps if name not in names]
    if missing:
        raise RefusedError(
            f"no TApp {', '.join(missing)} in {options.namespace or 'the current namespace'}; "
            f"kubectl get tapps -A{kubectl.target} lists all TApps"
        )
    return [
        tapp for tapp in tapps if not options.tapps or tapp["metadata"]["name"] in options.tapps
    ]


def _plan(
    kubectl: Kubectl, tapps: Sequence[Json], keep_claims: bool, say: Say
) -> tuple[list[Move], int, int]:
    """Plans the moves of TApps, and prints an error for each namespace that cannot be read.

    Returns the moves, the number of claims that would be deleted together with their TApp, and the
    number of unreadable namespaces.

    Args:
        kubectl: reads the cluster.
        tapps: the TApps.
        keep_claims: True if the Namespace has to become a second owner of each claim.
        say: prints a line.
    """
    moves: list[Move] = []
    unprotected_claims = unread = 0
    for namespace in sorted({tapp["metadata"]["namespace"] for tapp in tapps}):
        here = [tapp for tapp in tapps if tapp["metadata"]["namespace"] == namespace]
        try:
            pods = kubectl.list(PODS, namespace)
            claims = kubectl.list(CLAIMS, namespace)
            uid = _namespace_uid(kubectl, namespace) if keep_claims else None
        except KubectlError as error:
            say(f"FAILED: namespace {namespace} cannot be read, so it is left out: {error}")
            unread += 1
            continue
        for tapp in here:
            move = plan_move(tapp, pods, claims, uid, kubectl.target)
            moves.append(move)
            unprotected_claims += unprotected(move, claims)
    return moves, unprotected_claims, unread


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _namespace_uid(kubectl: Kubectl, name: str) -> str:
    found = kubectl.find("namespaces", "", name)
    if found is None:
        raise KubectlError(f"kubectl get namespaces {name}", "it does not exist")
    return str(found["metadata"]["uid"])


def _check_cluster(
    kubectl: Kubectl, options: argparse.Namespace, moves: Sequence[Move], say: Say
) -> None:
    """Prints problems and warnings about the cluster, such as an old controller that still runs.

    Raises RefusedError if there is a problem and the options have `--apply` without `--force`.
    """
    problems, warnings = old_controller(kubectl, {move.namespace for move in moves})
    # A run without `--apply` after a complete move must not ask users to remove the
    # CompositeController that they have just installed.
    if options.apply or any(move.changes or move.in_the_way for move in moves):
        more_problems, more_warnings = active_composite(kubectl)
        problems += more_problems
        warnings += more_warnings
    for warning in warnings + old_webhook(kubectl):
        say(f"warning: {warning}")
    if not problems:
        return
    if options.apply and not options.force:
        raise RefusedError(
            "nothing was written: "
            + "; ".join(problems)
            + ". (--force writes nevertheless, which is not recommended)"
        )
    for problem in problems:
        say(f"warning: {problem}")


def _print_move(move: Move, changes: bool, say: Say) -> None:
    to_do = f"{_count(len(move.changes), 'change')} to make, {move.done} done already"
    say(f"TApp {move.namespace}/{move.name} (uid {move.uid}): {to_do}")
    for change in move.changes if changes else ():
        say(f"  {change.child}: {change.what}")
    for sentence in move.in_the_way:
        say(f"  PROBLEM: {sentence}")
    for sentence in move.warnings:
        say(f"  warning: {sentence}")


def _apply(kubectl: Kubectl, changes: Sequence[Change], say: Say) -> int:
    failed = 0
    for number, change in enumerate(changes, 1):
        try:
            outcome = _write(kubectl, change)
        except KubectlError as error:
            failed += 1
            outcome = f"FAILED: {error}"
        say(f"[{number}/{len(changes)}] {change.child}: {outcome}")
    return failed


def _write(kubectl: Kubectl, change: Change) -> str:
    """Sends one patch, and returns the result as a phrase for the user.

    If the API server refuses a guarded patch because the object has changed, the patch is adapted
    to the new object and sent again. Raises KubectlError if the patch fails.
    """
    child, body = change.child, change.patch
    for tries in range(1, _MAX_TRIES + 1):
        try:
            kubectl.patch(child.resource, child.namespace, child.name, body)
        except KubectlError as error:
            if error.reason == "NotFound":
                return "does not exist any more"
            if error.reason != "Conflict" or not change.guarded or tries == _MAX_TRIES:
                raise
            newer = kubectl.find(child.resource, child.namespace, child.name)
            if newer is None:
                return "does not exist any more"
            body = _rebased(body, newer)
        else:
            return "done"
    raise AssertionError("the last try returns or raises")


def _rebased(body: Json, newer: Json) -> Json:
    """Returns a guarded patch for a newer version of its object.

    The new patch adds the new owner to the present owners. It contains the present resourceVersion,
    so the API server refuses it if the object changes again.

    Args:
        body: the patch for the older version of the object.
        newer: the object as it is now.
    """
    added = body["metadata"]["ownerReferences"][-1]
    owners = newer["metadata"].get("ownerReferences") or []
    others = [owner for owner in owners if owner.get("uid") != added["uid"]]
    return {
        "metadata": {
            **body["metadata"],
            "resourceVersion": newer["metadata"]["resourceVersion"],
            "ownerReferences": [*others, added],
        }
    }


if __name__ == "__main__":
    sys.exit(main())
