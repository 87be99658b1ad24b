"""Reads from and writes to a cluster, through the user's kubectl."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from kubectl_tapp.base import shipped
from kubectl_tapp.base.arguments import nearest
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.hints import hint
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import generation_seen
from kubectl_tapp.base.targets import Given, passed_on
from kubectl_tapp.cluster.first_call import FirstCall
from kubectl_tapp.cluster.kubectl import Finished, KubectlError, Program, Runner, failure
from kubectl_tapp.cluster.kuberc import path_of
from kubectl_tapp.cluster.pod import pod_namespace
from kubectl_tapp.cluster.registration import (
    Registration,
    chosen,
    in_charge,
    service_of,
    with_services,
)
from kubectl_tapp.cluster.watching import Watching
from tapp.words.kinds import PLAIN, SERVICE, Kind

if TYPE_CHECKING:
    from tapp.world import Options

TAPPS = "tapps.apps.tkestack.io"
PODS, CLAIMS, EVENTS, NAMESPACES = "pods", "persistentvolumeclaims", "events", "namespaces"
REVISIONS, DEPLOYMENTS = "controllerrevisions.apps", "deployments.apps"
SERVICES = "services"
CLASSES = "storageclasses.storage.k8s.io"
CONTROLLERS = "compositecontrollers.metacontroller.k8s.io"
FIELD_MANAGER = "kubectl-tapp"  # The owner of the fields that are written
_CHILDREN = (PODS, CLAIMS, REVISIONS)
_GONE = ("Forbidden", "NoSuchKind", "NotFound")
WARNINGS = "--field-selector=type=Warning"
_NO_CURRENT_CONTEXT = "current-context must exist"  # kubectl's words; no option can ask for it
_AT_ONCE = 4  # Calls of kubectl at the same time
_LONG = 100_000
Documents = list[Document]
_Words = list[str]


class ClusterAccess:
    """One cluster and namespace, as one user sees them."""

    def __init__(
        self, targets: Given, runner: Runner | None = None, first_call: FirstCall | None = None
    ) -> None:
        """Leaves to kubectl what is left out, and its running to `runner`, if there is one.

        `first_call` is the gate of all calls of the same user; None for one of its own.
        """
        self._runner = runner or Program()
        self._first_call = first_call or FirstCall()
        self._timeout = "request_timeout" in targets
        self._namespace: str | None = targets.get("namespace")
        self._chosen: dict[tuple[str, str] | None, Options] = {}
        self.kuberc = path_of(targets.get("kuberc"))  # the user's preferences; None: switched off
        self._options = [*passed_on(targets)]

    @cached_property
    def namespace(self) -> str:
        """The namespace that kubectl uses: the given one, else the context's, else the pod's.

        Without any of them it is `default`. Raises KubectlError if the kubeconfig cannot be read.
        """
        if self._namespace:
            return self._namespace
        # Extensions of a kubeconfig, such as Telepresence's, have namespaces of their own.
        path = "--output=jsonpath={.contexts[0].context.namespace}"
        done = self.call(["config", "view", "--minify", path])
        if done.code and _NO_CURRENT_CONTEXT not in done.err:
            raise failure(done)
        named = "" if done.code else done.out.strip()
        return named or pod_namespace() or "default"

    def get(
        self, resource: str, name: str, namespace: str | None = None, *, managed: bool = False
    ) -> Document:
        """One object by plural and group; CommandError: none (the nearest name), unreadable."""
        try:
            more = ["--show-managed-fields=true"] if managed else []
            found = self._json("get", resource, name, *self._scope(namespace), *more)
        except KubectlError as error:
            if error.reason == "NotFound" and resource == TAPPS:
                raise self._unknown(name, namespace) from None
            raise
        if not found.get("metadata", {}).get("name"):
            raise CommandError(f"kubectl get: its answer is no {resource}")
        return found

    def list(
        self, resource: str, selector: str | None = None, *, all_namespaces: bool = False
    ) -> Documents:
        """All objects of a kind, or those with these labels."""
        scope = ["--all-namespaces"] if all_namespaces else self._scope(None)
        chosen = [f"--selector={selector}"] if selector else []
        return _items(self._json("get", resource, *scope, *chosen))

    def named(self, resource: str, names: Sequence[str], namespace: str) -> Documents | str:
        """The objects of these names that are there, or the sentence that says why nobody knows."""
        return self._readable(resource, *names, "--namespace", namespace, "--ignore-not-found")

    def names(self, resource: str) -> _Words:
        """The names of all objects of a kind: quicker than the objects."""
        text = "--output=jsonpath={range .items[*]}{.metadata.name}{' '}{end}"
        return self.kubectl("get", resource, *self._scope(None), text).out.split()

    def observe(
        self, name: str, *, events: bool = False, before: Observed | None = None
    ) -> Observed:
        """One TApp and all that belongs to it; what may not be read is left out, and noted.

        With `events` also the warnings of the last hour. `before` is the TApp as it was seen last:
        as long as its spec is answered and nobody writes it, whose status tells of all that
        happens, only its pods are read again.
        """
        if before is not None:
            tapp = self.get(TAPPS, name)
            answered = generation_seen(tapp) == tapp["metadata"].get("generation")
            if answered and _version(tapp) == _version(before.tapp):
                pods = self._owned(PODS, tapp)
                there = before.pods if isinstance(pods, str) else pods
                return replace(before, tapp=tapp, pods=there, events=[])
        tapp = self.get(TAPPS, name)  # before all others: if it fails, nothing else is tried
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            registered = pool.submit(self._registered)
            namespace = tapp["metadata"]["namespace"]
            asked: dict[str, Sequence[str]] = {NAMESPACES: (namespace,)}
            if (tapp.get("spec") or {}).get("volumeClaimTemplates"):
                asked[CLASSES] = ()
            if events:
                asked[EVENTS] = ("--namespace", namespace, WARNINGS)
            plain = plain_kinds(tapp)
            owned = (*_CHILDREN, *(kind.qualified for kind in plain))
            futures = {each: pool.submit(self._owned, each, tapp) for each in owned} | {
                each: pool.submit(self._readable, each, *words) for each, words in asked.items()
            }
            found = {each: future.result() for each, future in futures.items()}
            controller = in_charge(registered.result(), tapp)
        known, unread = _told_apart(found)
        return Observed(
            tapp=tapp,
            pods=known.get(PODS, []),
            claims=known.get(CLAIMS, []),
            revisions=known.get(REVISIONS, []),
            plain={kind: known.get(kind.qualified, []) for kind in plain},
            namespace=next(iter(known.get(NAMESPACES, [])), None),
            storage_classes=known.get(CLASSES, []),
            controller=controller,
            events=known.get(EVENTS, []),
            unread=unread,
        )

    def controller(self, tapp: Document | None = None) -> Document:
        """The registered CompositeController of a TApp (None: of no shard), else the shipped."""
        return in_charge(self._registered(), tapp) or shipped.manifest(shipped.COMPOSITE)

    def registration(self, observed: Observed | None = None) -> Registration:
        """The CompositeController that a TApp was observed with, and the operator's choices.

        These are those of the service's Deployment, if that may be read; it is read once. Without a
        TApp the CompositeController is meant that serves TApps of no shard.
        """
        controller = None if observed is None else observed.controller
        if observed is None or not observed.tapp["metadata"].get("uid"):  # nobody has looked yet
            controller = self.controller(None if observed is None else observed.tapp)
        elif controller is None:
            controller = shipped.manifest(shipped.COMPOSITE)
            if observed.plain.get(SERVICE):
                controller = with_services(controller)
        service = service_of(controller)
        if service not in self._chosen:
            name, namespace = service or ("", "")
            call = (DEPLOYMENTS, name, "--namespace", namespace)
            found = self._readable(*call) if service else []
            deployment = found[0] if found and not isinstance(found, str) else None
            self._chosen[service] = chosen(deployment)
        return Registration(controller, self._chosen[service])

    def patch(
        self, resource: str, name: str, patch: object, type_: str = "json", *, dry_run: bool = False
    ) -> Document:
        """Change an object by a `json` or `merge` patch; what the API server has afterwards.

        Raises KubectlError: it was refused; `reason` is the API server's, a failed `test` of a JSON
        patch is `Invalid`.
        """
        more = ["--dry-run=server"] if dry_run else []
        more.append(f"--field-manager={FIELD_MANAGER}")
        text = json.dumps(patch)
        # One argument holds 128 KiB on Linux, and a template may be larger than that.
        short = len(text) < _LONG
        more += [f"--type={type_}", f"--patch={text}" if short else "--patch-file=/dev/stdin"]
        scope, stdin = self._scope(None), "" if short else text
        return self._json("patch", resource, name, *scope, *more, stdin=stdin)

    def apply(
        self, document: Document, more: Sequence[str] = (), *, dry_run: bool = False
    ) -> Document:
        """Create or change an object as `kubectl apply` does; what the API server has then."""
        options = [*more, *(["--dry-run=server"] if dry_run else [])]
        text = json.dumps(document)
        return self._json("apply", "--filename=-", *self._scope(None), *options, stdin=text)

    def create(self, document: Document) -> None:
        """Tries to create an object by a dry run. Raises KubectlError if it is refused.

        As of Metacontroller's own creations, unknown fields are no error.
        """
        text = json.dumps(document)
        options = ("--validate=ignore", "--dry-run=server")
        self._json("create", "--filename=-", *self._scope(None), *options, stdin=text)

    def with_events(self, observed: Observed, which: str = WARNINGS) -> Observed:
        """The same with these events of its namespace, as far as they may be read."""
        space = observed.tapp["metadata"]["namespace"]
        found = self._readable(EVENTS, "--namespace", space, which)
        return observed if isinstance(found, str) else replace(observed, events=found)

    def _owned(self, resource: str, tapp: Document) -> Documents | str:
        """The children of a TApp as Metacontroller selects them, or why they may not be read."""
        uid, namespace = tapp["metadata"]["uid"], tapp["metadata"]["namespace"]
        selector = f"--selector=controller-uid={uid}"
        # Only the managed fields tell when a kubelet last reported.
        more = ["--show-managed-fields=true"] if resource == PODS else []
        found = self._readable(resource, "--namespace", namespace, selector, *more)
        return found if isinstance(found, str) else [x for x in found if belongs(x, uid)]

    def _readable(self, resource: str, *arguments: str) -> Documents | str:
        """Objects, or the sentence that says why they may not be read."""
        try:
            return _items(self._json("get", resource, *arguments))
        except KubectlError as error:
            if error.reason in _GONE:
                return str(error)
            raise

    def _registered(self) -> Documents:
        found = self._readable(CONTROLLERS)
        return [
            each
            for each in ([] if isinstance(found, str) else found)
            if each.get("spec", {}).get("parentResource", {}).get("resource") == "tapps"
        ]

    def _unknown(self, name: str, namespace: str | None) -> CommandError:
        where = namespace or self.namespace
        try:
            items = _items(self._json("get", TAPPS, *self._scope(namespace)))
        except KubectlError:
            items = []
        names = sorted(item["metadata"]["name"] for item in items)
        advice = nearest(name, names) if names else f"; {hint('list', '-A')} shows those of others"
        return KubectlError("NotFound", f"no TApp {name!r} in namespace {where}{advice}")

    def _scope(self, namespace: str | None) -> _Words:
        where = namespace or self._namespace
        return ["--namespace", where] if where else []

    def _json(self, *arguments: str, stdin: str = "") -> Document:
        verb, text = arguments[0], self.kubectl(*arguments, "--output=json", stdin=stdin).out
        if not text.strip() and "--ignore-not-found" in arguments:
            return {"items": []}
        try:
            found = msgspec.json.decode(text)
        except ValueError:
            raise CommandError(f"kubectl {verb}: its answer is not JSON") from None
        if not isinstance(found, dict) or not isinstance(found.get("metadata", {}), dict):
            raise CommandError(f"kubectl {verb}: its answer is no object")
        return found

    def watch(self, resource: str, *arguments: str) -> "Watching":
        """The objects of a kind as they are and become; nothing is called before it is read."""
        words = ["get", resource, *arguments, "--watch", "--output-watch-events", "--output=json"]
        # A time limit of the user is one for answers, and a watch goes on.
        endless = ["--request-timeout=0"] if self._timeout else []
        runner = self._runner
        return Watching(lambda: runner.follow([*self._options, *endless, *words]))

    def kubectl(self, *arguments: str, stdin: str = "") -> Finished:
        """Any other call, with this cluster's options. Raises KubectlError: it failed."""
        done = self.call(arguments, stdin)
        if done.code:
            raise failure(done)
        return done

    def call(self, arguments: Sequence[str], stdin: str = "") -> Finished:
        """The same, whatever becomes of it."""

        def run() -> Finished:
            return self._runner.run([*self._options, *arguments], stdin)

        # The commands of `kubectl config` read files, and ask no cluster.
        return run() if arguments[0] == "config" else self._first_call.run(run)


def _version(tapp: Document) -> tuple[str, str]:
    return tapp["metadata"]["uid"], tapp["metadata"]["resourceVersion"]


def _told_apart(found: dict[str, Documents | str]) -> tuple[dict[str, Documents], dict[str, str]]:
    unread = {each: items for each, items in found.items() if isinstance(items, str)}
    known = {each: items for each, items in found.items() if not isinstance(items, str)}
    return known, unread


def _items(found: Document) -> Documents:
    """The objects of a list; one object is a list of one."""
    items = found.get("items", [found])
    return items if isinstance(items, list) else []


def plain_kinds(tapp: Document) -> list[Kind]:
    """The kinds of a component, as Services, that a TApp's spec asks for."""
    return [kind for kind in PLAIN if (tapp.get("spec") or {}).get(kind.asked_by)]


def belongs(item: Document, uid: str) -> bool:
    """Tell whether Metacontroller takes it for a child: it is of nobody else."""
    owners = item["metadata"].get("ownerReferences") or []
    return all(owner["uid"] == uid for owner in owners if owner.get("controller"))
