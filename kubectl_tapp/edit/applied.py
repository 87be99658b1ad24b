"""Asks the API server by a dry run for the result of an edit: a patch, or an applied file.

`dry_run_result` is the entry point. A client-side and a server-side apply remove different fields
that the file no longer has. The client compares the file with the annotation
`last-applied-configuration`, which a client-side apply writes. The API server compares the file
with the fields that the same manager applied last, by `metadata.managedFields`. A plan by the wrong
method would keep fields that the apply removes. So `apply_method` finds out which method the user
will use.

Source: Kubernetes, "Server-Side Apply", and kubectl's `apply`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kubectl_tapp.base.errors import CommandError, UsageError
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.cluster.access import TAPPS, ClusterAccess
from kubectl_tapp.cluster.kubectl import KubectlError
from kubectl_tapp.cluster.kuberc import preferred_options
from kubectl_tapp.cluster.session import Session
from kubectl_tapp.edit.edits import json_patch
from tapp.kube.merges import kubectl_applied

KUBECTL = "kubectl"  # The field manager of `kubectl apply --server-side`
_APPLIED = "f:kubectl.kubernetes.io/last-applied-configuration"
"""An entry of `managedFields` with this field shows that its manager has used a client-side
apply.
"""


@dataclass(frozen=True)
class ApplyMethod:
    """The method by which `kubectl apply` will apply a file: on the client or on the server.

    A plan asks the API server for the result by the same method.
    """

    manager: str = ""  # the field manager of a server-side apply; "" for a client-side apply
    force: bool = False  # True if the apply takes over fields that other managers own
    # True if all earlier applies of the TApp were client-side. kubectl then migrates the ownership
    # of the fields at a server-side apply, but not in a dry run.
    is_first_server_side: bool = False
    remark: str = ""  # a sentence for the user that says which method the plan assumes, and why

    @property
    def options(self) -> list[str]:
        """The options of `kubectl apply` for this method; empty for a client-side apply."""
        more = ["--force-conflicts"] if self.force else []
        return ["--server-side", f"--field-manager={self.manager}", *more] if self.manager else []


def apply_method(
    cluster: ClusterAccess, observed: Observed, server_side: bool | None, *, force: bool
) -> ApplyMethod:
    """Finds out how `kubectl apply` will apply a file: on the client or on the server.

    Raises UsageError if `force` is True for a client-side apply, which has no conflicts.

    Args:
        cluster: the access to the cluster, with the user's preferences for kubectl.
        observed: the TApp before the edit. Without a uid the TApp does not exist yet.
        server_side: the user's choice by `--server-side` or `--no-server-side`. None if the user
            has not chosen: then the preferences decide, or else the method by which the TApp was
            applied last.
        force: True to take over fields that other managers own (`--force-conflicts`).
    """
    preferred = preferred_options("apply", cluster.kuberc)
    by_server = _BOOLEANS.get(preferred.get("server-side", ""))
    exists = bool(observed.tapp["metadata"].get("uid"))
    found, by_client = "", False
    if exists and server_side is not False:
        found, by_client = _last_apply(cluster, observed)
    manager, why = found, ""
    if server_side is not None:
        manager = KUBECTL if server_side else ""
    elif by_server is not None:
        manager = KUBECTL if by_server else ""
        why = f"because {cluster.kuberc} sets server-side of apply to {str(by_server).lower()}"
    if manager == KUBECTL:
        manager = preferred.get("field-manager") or KUBECTL
        force = force or bool(_BOOLEANS.get(preferred.get("force-conflicts", "")))
    if force and not manager:
        raise UsageError("--force-conflicts needs --server-side")
    remark = _remark(manager, server_side, why) if exists or why else ""
    return ApplyMethod(
        manager, force, bool(manager) and by_client, _with_ignored_preferences(remark, preferred)
    )


_BOOLEANS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)
"""The texts that kubectl accepts as a boolean. Source: Go, `strconv.ParseBool`."""
# Preferences that a plan follows, and preferences that change only the output of `kubectl apply`.
_FOLLOWED = {"server-side", "field-manager", "force-conflicts"}
_OF_OUTPUT = {"output", "template", "show-managed-fields", "allow-missing-template-keys"}


def _with_ignored_preferences(remark: str, preferred: Mapping[str, str]) -> str:
    """Returns the remark, extended by a clause that names the preferences for `apply` that the plan
    ignores.

    `preferred` maps option names to the values in the preferences.
    """
    more = sorted(preferred.keys() - _FOLLOWED - _OF_OUTPUT)
    if not more:
        return remark
    options = ", ".join(f"--{name}={preferred[name]}" for name in more)
    text = f"your kuberc adds {options} to `kubectl apply`, which this plan ignores"
    return f"{remark}; {text}" if remark else text


def _remark(manager: str, server_side: bool | None, why: str) -> str:
    if not manager:
        text = "planned as `kubectl apply` (client-side) would write it"
        if why:
            return f"{text}, {why}; --server-side plans for a server-side apply"
        return text + (
            "; --server-side plans for a server-side apply" if server_side is None else ""
        )
    text = f"planned as `kubectl apply --server-side` would write it, field manager {manager}"
    if server_side is None:
        why = why or "because this TApp was last applied that way"
        text += f", {why}; --no-server-side plans for a client-side apply"
    return text


def _last_apply(cluster: ClusterAccess, observed: Observed) -> tuple[str, bool]:
    """Returns the field manager of the last apply, and True if any apply of the TApp was
    client-side.

    The field manager is "" if the last apply was client-side, or if the TApp was never applied.
    """
    metadata = cluster.get(
        TAPPS, observed.name, observed.tapp["metadata"]["namespace"], managed=True
    )["metadata"]
    server, client, by_client = ("", ""), "", False
    for each in metadata.get("managedFields") or []:
        at, who = str(each.get("time") or ""), str(each.get("manager") or "")
        if each.get("subresource"):
            continue
        if each.get("operation") == "Apply" and who:
            server = max(server, (at, who))
        elif _updates_last_applied(each):
            client, by_client = max(client, at), True
    at, who = server
    return who if at >= client else "", by_client


def _updates_last_applied(managed: Document) -> bool:
    place: Any = managed.get("fieldsV1")
    for key in ("f:metadata", "f:annotations", _APPLIED):
        place = place.get(key) if isinstance(place, dict) else None
    return place is not None


def dry_run_result(
    session: Session, observed: Observed, edited: Document, method: ApplyMethod | None
) -> tuple[Document, tuple[str, ...]]:
    """Asks the API server by a dry run for the TApp after an edit.

    Returns the TApp after the edit, and the reasons why the API server refuses the edit. If it
    refuses the edit, the first result is `edited` itself. If it accepts the edit, there are no
    reasons. For a user without the right to write the TApp, the plugin computes the result of a
    patch or of a client-side apply. The API server has not checked this result, and a note on the
    console says so. Raises CommandError if the user may not do a server-side apply, or if the API
    server cannot be reached.

    Args:
        session: the run of the command.
        observed: the TApp before the edit, with its objects.
        edited: the TApp after the edit, or the TApp in the user's file.
        method: how the file will be applied; None if the edit is a patch and not a file.
    """
    by_server = method is not None and bool(method.manager)
    try:
        return _dry_run(session.cluster, observed, edited, method), ()
    except KubectlError as error:
        if error.reason == "Forbidden" and not by_server:
            session.note(f"the API server did not check the edit: {error}")
            return (edited if method is None else client_side_result(observed, edited, method)), ()
        if error.reason == "Forbidden":
            raise CommandError(f"{error}; {_ONLY_SERVER_KNOWS}") from None
        if error.reason in ("Unreachable", "Timeout", "NoSuchKind"):
            raise
        # Only a conflict of a client-side apply is about the resourceVersion. A conflict of a
        # server-side apply is about field managers.
        old = error.reason == "Conflict" and edited["metadata"].get("resourceVersion")
        hint = ": remove metadata.resourceVersion from the file, because it names an older version"
        return edited, (f"{error}{hint if old and method is not None and not by_server else ''}",)


def _dry_run(
    cluster: ClusterAccess, observed: Observed, edited: Document, method: ApplyMethod | None
) -> Document:
    if method is None:
        patch = json_patch(observed.tapp, edited)
        return cluster.patch(TAPPS, observed.name, patch, dry_run=True) if patch else edited
    # The server-side dry run detects conflicts. For the first server-side apply its result would
    # keep fields that the real apply removes, so the client-side result is used instead.
    found = cluster.apply(edited, method.options, dry_run=True)
    return cluster.apply(edited, dry_run=True) if method.is_first_server_side else found


_ONLY_SERVER_KNOWS = (
    "only the API server knows the result of a server-side apply; --no-server-side plans for a "
    "client-side apply"
)


def client_side_result(observed: Observed, edited: Document, method: ApplyMethod) -> Document:
    """Computes the TApp after a client-side apply, without a call of the API server.

    The defaults that the API server would add are missing. Raises UsageError for a server-side
    apply of an existing TApp, whose result only the API server knows.
    """
    if not observed.tapp["metadata"].get("uid"):
        return edited
    if method.manager:
        raise UsageError(_ONLY_SERVER_KNOWS)
    return kubectl_applied(observed.tapp, edited)
