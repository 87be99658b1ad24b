"""Reads and writes objects of a cluster through the user's kubectl.

The entry point is `ClusterAccess`. Its method `observe` reads a TApp with everything that the
service's decisions depend on. The other methods correspond to commands of kubectl.
"""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec

from kubectl_tapp.base import shipped
from kubectl_tapp.base.arguments import name_suggestion
from kubectl_tapp.base.errors import CommandError
from kubectl_tapp.base.global_options import GivenOptions, kubectl_arguments
from kubectl_tapp.base.hints import shell_command
from kubectl_tapp.base.observed import Document, Observed
from kubectl_tapp.base.reading import observed_generation
from kubectl_tapp.cluster.first_call import FirstCall
from kubectl_tapp.cluster.kubectl import CallResult, KubectlError, Program, Runner, error_of
from kubectl_tapp.cluster.kuberc import kuberc_path
from kubectl_tapp.cluster.pod import pod_namespace
from kubectl_tapp.cluster.registration import (
    Registration,
    controller_for,
    service_of,
    service_options,
    with_components,
)
from kubectl_tapp.cluster.watching import Watching
from tapp.words.kinds import PLAIN, Kind

if TYPE_CHECKING:
    from tapp.world import Options

TAPPS = "tapps.apps.tkestack.io"
PODS, CLAIMS, EVENTS, NAMESPACES = "pods", "persistentvolumeclaims", "events", "namespaces"
REVISIONS, DEPLOYMENTS = "controllerrevisions.apps", "deployments.apps"
SERVICES = "services"
CLASSES = "storageclasses.storage.k8s.io"
CONTROLLERS = "compositecontrollers.metacontroller.k8s.io"
FIELD_MANAGER = "kubectl-tapp"  # The field manager of all patches
_CHILDREN = (PODS, CLAIMS, REVISIONS)
# Reasons of errors with which a command can continue: the user may not read the objects, or there
# are none. Any other error ends the command.
_TOLERATED_REASONS = ("Forbidden", "NoSuchKind", "NotFound")
WARNINGS = "--field-selector=type=Warning"
_NO_CURRENT_CONTEXT = "current-context must exist"  # From kubectl's error message
_PARALLEL_CALLS = 4  # Largest number of calls of kubectl that run at the same time
_LONGEST_ARGUMENT = 100_000  # Largest number of characters of a patch that is passed as an argument
Documents = list[Document]
_Words = list[str]


class ClusterAccess:
    """Reads and writes objects as one user of one cluster, by calls of kubectl.

    Methods use the namespace of the command line, unless they have a parameter for another
    namespace.
    """

    def __init__(
        self,
        global_options: GivenOptions,
        runner: Runner | None = None,
        first_call: FirstCall | None = None,
    ) -> None:
        """Prepares the access without calling kubectl.

        Args:
            global_options: kubectl's options for cluster, user and namespace.
            runner: runs kubectl; None runs the program itself.
            first_call: lets the first call of kubectl run alone, so that only one call logs in. All
                `ClusterAccess` objects of one command share it; None creates a new one.
        """
        self._runner = runner or Program()
        self._first_call = first_call or FirstCall()
        self._has_timeout = "request_timeout" in global_options
        self._namespace: str | None = global_options.get("namespace")
        self._options_by_service: dict[tuple[str, str] | None, Options] = {}
        # The file with the user's preferences for kubectl; None if they are switched off.
        self.kuberc = kuberc_path(global_options.get("kuberc"))
        self._options = [*kubectl_arguments(global_options)]

    @cached_property
    def namespace(self) -> str:
        """The namespace that kubectl uses for this command line.

        It is the namespace that the command line names. Otherwise it is that of the kubeconfig's
        context, then that of the pod in which the command runs, and at last `default`. Raises
        KubectlError if the kubeconfig cannot be read.
        """
        if self._namespace:
            return self._namespace
        # The path names one field, because extensions of a context, such as Telepresence's, may
        # have further fields called `namespace`.
        path = "--output=jsonpath={.contexts[0].context.namespace}"
        done = self.call(["config", "view", "--minify", path])
        # Without a current context this call fails, although kubectl would use the pod's service
        # account.
        if done.code and _NO_CURRENT_CONTEXT not in done.err:
            raise error_of(done)
        named = "" if done.code else done.out.strip()
        return named or pod_namespace() or "default"

    def get(
        self, resource: str, name: str, namespace: str | None = None, *, managed: bool = False
    ) -> Document:
        """Returns one object.

        Raises CommandError if the object does not exist or cannot be read. For an unknown TApp the
        message suggests the most similar name.

        Args:
            resource: the resource type, such as `pods`.
            name: the name of the object.
            namespace: its namespace; None for the namespace of the command line.
            managed: True to include its metadata.managedFields.
        """
        try:
            more = ["--show-managed-fields=true"] if managed else []
            found = self._json("get", resource, name, *self._scope(namespace), *more)
        except KubectlError as error:
            if error.reason == "NotFound" and resource == TAPPS:
                raise self._unknown_tapp_error(name, namespace) from None
            raise
        if not found.get("metadata", {}).get("name"):
            raise CommandError(f"kubectl get returned an object that is none of {resource}")
        return found

    def list(
        self, resource: str, selector: str | None = None, *, all_namespaces: bool = False
    ) -> Documents:
        """Returns the objects of a resource type that match a label selector.

        Args:
            resource: the resource type, such as `pods`.
            selector: the label selector; None for all objects.
            all_namespaces: True for the objects of all namespaces; False for one namespace.
        """
        scope = ["--all-namespaces"] if all_namespaces else self._scope(None)
        chosen = [f"--selector={selector}"] if selector else []
        return _items(self._json("get", resource, *scope, *chosen))

    def get_named(self, resource: str, names: Sequence[str], namespace: str) -> Documents | str:
        """Returns the existing objects with these names, or a sentence that says why they cannot be
        read.
        """
        return self._get_or_reason(resource, *names, "--namespace", namespace, "--ignore-not-found")

    def list_names(self, resource: str) -> _Words:
        """Returns the names of all objects of a resource type, for shell completion.

        This is faster than `list`, which returns the complete objects.
        """
        text = "--output=jsonpath={range .items[*]}{.metadata.name}{' '}{end}"
        return self.kubectl("get", resource, *self._scope(None), text).out.split()

    def observe(
        self, name: str, *, events: bool = False, before: Observed | None = None
    ) -> Observed:
        """Reads a TApp and everything that the service's decisions depend on.

        Objects that the user may not read are left out and listed in `Observed.unread`. Raises
        CommandError if the TApp cannot be read.

        Args:
            name: the name of the TApp.
            events: True to read the Events of type Warning in its namespace as well.
            before: an earlier result for the same TApp, or None. If the TApp has not been written
                since then and the service has acted on its spec, only the pods are read again. Any
                other change that matters would also have changed the TApp's status.
        """
        if before is not None:
            tapp = self.get(TAPPS, name)
            answered = observed_generation(tapp) == tapp["metadata"].get("generation")
            if answered and _uid_and_version(tapp) == _uid_and_version(before.tapp):
                pods = self._children_of(PODS, tapp)
                there = before.pods if isinstance(pods, str) else pods
                return replace(before, tapp=tapp, pods=there, events=[])
        # The TApp is read first: if that fails, the command ends without reading the other objects.
        tapp = self.get(TAPPS, name)
        with ThreadPoolExecutor(_PARALLEL_CALLS) as pool:
            registered = pool.submit(self._composite_controllers)
            namespace = tapp["metadata"]["namespace"]
            asked: dict[str, Sequence[str]] = {NAMESPACES: (namespace,)}
            if (tapp.get("spec") or {}).get("volumeClaimTemplates"):
                asked[CLASSES] = ()
            if events:
                asked[EVENTS] = ("--namespace", namespace, WARNINGS)
            plain = optional_kinds(tapp)
            owned = (*_CHILDREN, *(kind.qualified for kind in plain))
            futures = {each: pool.submit(self._children_of, each, tapp) for each in owned} | {
                each: pool.submit(self._get_or_reason, each, *words)
                for each, words in asked.items()
            }
            found = {each: future.result() for each, future in futures.items()}
            controller = controller_for(registered.result(), tapp)
        known, unread = _split_unread(found)
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
        """Returns the registered CompositeController of a TApp.

        If none is registered or the user may not read it, the manifest of this release is returned.
        If `tapp` is None, the CompositeController for TApps without a shard label is returned.
        """
        return controller_for(self._composite_controllers(), tapp) or shipped.manifest(
            shipped.COMPOSITE
        )

    def registration(self, observed: Observed | None = None) -> Registration:
        """Returns the CompositeController of a TApp and the options that the service runs with.

        The options come from the environment of the service's Deployment, or are the defaults if
        the user may not read the Deployment. The Deployment is read only once. `observed` is the
        TApp with its objects; if it is None, the CompositeController for TApps without a shard
        label is returned.
        """
        controller = None if observed is None else observed.controller
        # A TApp without a uid comes from a file, and no CompositeController was read for it.
        if observed is None or not observed.tapp["metadata"].get("uid"):
            controller = self.controller(None if observed is None else observed.tapp)
        elif controller is None:
            controller = shipped.manifest(shipped.COMPOSITE)
            controller = with_components(
                controller, [kind for kind, found in observed.plain.items() if found]
            )
        service = service_of(controller)
        if service not in self._options_by_service:
            name, namespace = service or ("", "")
            call = (DEPLOYMENTS, name, "--namespace", namespace)
            found = self._get_or_reason(*call) if service else []
            deployment = found[0] if found and not isinstance(found, str) else None
            self._options_by_service[service] = service_options(deployment)
        return Registration(controller, self._options_by_service[service])

    def patch(
        self, resource: str, name: str, patch: object, type_: str = "json", *, dry_run: bool = False
    ) -> Document:
        """Applies a patch to an object and returns the resulting object.

        Raises KubectlError if the patch is refused; its `reason` is `Invalid` if a `test` operation
        of a JSON patch fails.

        Args:
            resource: the resource type, such as `pods`.
            name: the name of the object.
            patch: the patch, as JSON value.
            type_: the type of the patch, `json` or `merge`.
            dry_run: True if the API server only checks the patch and writes nothing.
        """
        more = ["--dry-run=server"] if dry_run else []
        more.append(f"--field-manager={FIELD_MANAGER}")
        text = json.dumps(patch)
        # Linux limits one argument to 128 KiB (MAX_ARG_STRLEN), and a template may be larger.
        short = len(text) < _LONGEST_ARGUMENT
        more += [f"--type={type_}", f"--patch={text}" if short else "--patch-file=/dev/stdin"]
        scope, stdin = self._scope(None), "" if short else text
        return self._json("patch", resource, name, *scope, *more, stdin=stdin)

    def apply(
        self, document: Document, more: Sequence[str] = (), *, dry_run: bool = False
    ) -> Document:
        """Runs `kubectl apply` for an object and returns the resulting object.

        `more` are further options of `kubectl apply`. If `dry_run` is True, the API server only
        checks the object and writes nothing.
        """
        options = [*more, *(["--dry-run=server"] if dry_run else [])]
        text = json.dumps(document)
        return self._json("apply", "--filename=-", *self._scope(None), *options, stdin=text)

    def try_create(self, document: Document) -> None:
        """Asks the API server by a dry run whether it would create an object; writes nothing.

        Raises KubectlError if the API server refuses the object. Unknown fields are accepted, as
        they are when Metacontroller creates the object.
        """
        text = json.dumps(document)
        options = ("--validate=ignore", "--dry-run=server")
        self._json("create", "--filename=-", *self._scope(None), *options, stdin=text)

    def with_events(self, observed: Observed, which: str = WARNINGS) -> Observed:
        """Returns a copy of `observed` with the Events of its namespace that match the selector
        `which`.

        Returns `observed` unchanged if the user may not read Events.
        """
        space = observed.tapp["metadata"]["namespace"]
        found = self._get_or_reason(EVENTS, "--namespace", space, which)
        return observed if isinstance(found, str) else replace(observed, events=found)

    def _children_of(self, resource: str, tapp: Document) -> Documents | str:
        """Returns the children of a TApp, or a sentence that says why they cannot be read.

        Metacontroller selects children by the label `controller-uid`, and so does this method.
        """
        uid, namespace = tapp["metadata"]["uid"], tapp["metadata"]["namespace"]
        selector = f"--selector=controller-uid={uid}"
        # Only metadata.managedFields shows when the kubelet last wrote the pod's status.
        more = ["--show-managed-fields=true"] if resource == PODS else []
        found = self._get_or_reason(resource, "--namespace", namespace, selector, *more)
        return found if isinstance(found, str) else [x for x in found if is_child(x, uid)]

    def _get_or_reason(self, resource: str, *arguments: str) -> Documents | str:
        """Returns the objects of a `kubectl get`, or a sentence that says why they cannot be read.

        Raises KubectlError for an error that is neither a missing right nor a missing resource.
        """
        try:
            return _items(self._json("get", resource, *arguments))
        except KubectlError as error:
            if error.reason in _TOLERATED_REASONS:
                return str(error)
            raise

    def _composite_controllers(self) -> Documents:
        found = self._get_or_reason(CONTROLLERS)
        return [
            each
            for each in ([] if isinstance(found, str) else found)
            if each.get("spec", {}).get("parentResource", {}).get("resource") == "tapps"
        ]

    def _unknown_tapp_error(self, name: str, namespace: str | None) -> CommandError:
        where = namespace or self.namespace
        try:
            items = _items(self._json("get", TAPPS, *self._scope(namespace)))
        except KubectlError:
            items = []
        names = sorted(item["metadata"]["name"] for item in items)
        advice = (
            name_suggestion(name, names)
            if names
            else f"; {shell_command('list', '-A')} lists the TApps of all namespaces"
        )
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
            raise CommandError(f"kubectl {verb} returned text that is not JSON") from None
        if not isinstance(found, dict) or not isinstance(found.get("metadata", {}), dict):
            raise CommandError(f"kubectl {verb} returned JSON that is not an object")
        return found

    def watch(self, resource: str, *arguments: str) -> "Watching":
        """Returns a watch of a resource type. kubectl is started when its events are first read.

        `arguments` are further arguments of `kubectl get`, such as a name or a selector.
        """
        words = ["get", resource, *arguments, "--watch", "--output-watch-events", "--output=json"]
        # The user's --request-timeout is meant for single requests. It would also end a watch, so
        # it is overridden.
        endless = ["--request-timeout=0"] if self._has_timeout else []
        runner = self._runner
        return Watching(lambda: runner.follow([*self._options, *endless, *words]))

    def kubectl(self, *arguments: str, stdin: str = "") -> CallResult:
        """Runs kubectl with the user's options and returns its result.

        `stdin` is the text for its standard input. Raises KubectlError if kubectl fails.
        """
        done = self.call(arguments, stdin)
        if done.code:
            raise error_of(done)
        return done

    def call(self, arguments: Sequence[str], stdin: str = "") -> CallResult:
        """Runs kubectl with the user's options and returns its result, even if kubectl fails.

        `stdin` is the text for its standard input.
        """

        def run() -> CallResult:
            return self._runner.run([*self._options, *arguments], stdin)

        # `kubectl config` reads only files, so it needs no login.
        return run() if arguments[0] == "config" else self._first_call.run(run)


def _uid_and_version(tapp: Document) -> tuple[str, str]:
    return tapp["metadata"]["uid"], tapp["metadata"]["resourceVersion"]


def _split_unread(found: dict[str, Documents | str]) -> tuple[dict[str, Documents], dict[str, str]]:
    unread = {each: items for each, items in found.items() if isinstance(items, str)}
    known = {each: items for each, items in found.items() if not isinstance(items, str)}
    return known, unread


def _items(found: Document) -> Documents:
    """Returns the objects in the output of `kubectl get`. A single object counts as a list of
    one.
    """
    items = found.get("items", [found])
    return items if isinstance(items, list) else []


def optional_kinds(tapp: Document) -> list[Kind]:
    """Returns the kinds of optional children, such as Services, that the spec of a TApp asks
    for.
    """
    return [kind for kind in PLAIN if (tapp.get("spec") or {}).get(kind.requested_by) is not None]


def is_child(item: Document, uid: str) -> bool:
    """Returns True if an object has no controller, or if its controller is the TApp with this uid.

    The caller has checked that the object has the label of the TApp.
    """
    owners = item["metadata"].get("ownerReferences") or []
    return all(owner["uid"] == uid for owner in owners if owner.get("controller"))
