"""Tests that `kubectl tapp plan` tries a pod of each new template on the API server, by a
dry run.
"""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
import yaml

from kubectl_tapp.cluster.session import Session
from kubectl_tapp.edit import applied
from kubectl_tapp.edit.trial import try_children

from .app import App, tapp, template
from .cluster import Cluster
from .plugin import Plugin

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

Json = dict[str, Any]


def container(**fields: Any) -> Json:
    """Returns a pod spec whose container has these fields."""
    return {"containers": [{"name": "app", "image": "app:2", **fields}]}


def probe(kind: str, **fields: Any) -> Json:
    return container(**{kind: {"httpGet": {"port": 80}, **fields}})


def pod(**fields: Any) -> Json:
    return {**container(), **fields}


def volume(mount: Json, **fields: Any) -> Json:
    spec = container(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
    return {**spec, "volumes": [{"name": "data", **(fields or {"emptyDir": {}})}]}


def port(**fields: Any) -> Json:
    return container(ports=[{"containerPort": 80, **fields}])


def requests(**amounts: str) -> Json:
    return container(resources={"requests": amounts})


INVALID: dict[str, Json] = {
    "a port name of 16 characters": port(name="a-port-name-long"),
    "a port name without a letter": port(name="8080"),
    "a port of 0": port(containerPort=0),
    "a port of 70000": port(containerPort=70000),
    "a protocol in small letters": port(protocol="tcp"),
    "a host port twice": container(
        ports=[{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]),
    "a port name twice": container(
        ports=[{"containerPort": 80, "name": "a"}, {"containerPort": 81, "name": "a"}]),
    "a host port beside hostNetwork": {**port(hostPort=81), "hostNetwork": True},
    "successThreshold of a liveness probe": probe("livenessProbe", successThreshold=2),
    "successThreshold of a startup probe": probe("startupProbe", successThreshold=2),
    "a negative periodSeconds": probe("readinessProbe", periodSeconds=-1),
    "a negative initialDelaySeconds": probe("readinessProbe", initialDelaySeconds=-1),
    "a probe with two handlers": probe("readinessProbe", tcpSocket={"port": 80}),
    "a probe without a handler": container(readinessProbe={"periodSeconds": 1}),
    "a scheme in small letters": container(
        readinessProbe={"httpGet": {"port": 80, "scheme": "http"}}),
    "a grace period of a readiness probe": probe(
        "readinessProbe", terminationGracePeriodSeconds=5),
    "imagePullPolicy in small letters": container(imagePullPolicy="always"),
    "terminationMessagePolicy": container(terminationMessagePolicy="Log"),
    "an image with a blank": container(image=" app:2"),
    "runAsUser -1": container(securityContext={"runAsUser": -1}),
    "runAsGroup of the pod -1": pod(securityContext={"runAsGroup": -1}),
    "privileged without escalation": container(
        securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
    "a seccomp profile of no type": container(
        securityContext={"seccompProfile": {"type": "Default"}}),
    "an unsafe sysctl name": pod(securityContext={"sysctls": [{"name": "A B", "value": "1"}]}),
    "a request above its limit": container(
        resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
    "a negative request": requests(cpu="-1"),
    "a resource without a domain": requests(gpu="1"),
    "an extended resource without a limit": requests(**{"example.com/gpu": "1"}),
    "a name of a container in capitals": {"containers": [{"name": "App", "image": "app:2"}]},
    "a container twice": {"containers": [*container()["containers"], *container()["containers"]]},
    "an init container with a readiness probe": pod(
        initContainers=[
            {"name": "a", "image": "a:1", "readinessProbe": {"tcpSocket": {"port": 1}}}]),
    "a variable without a name": container(env=[{"value": "1"}]),
    "a variable with two sources": container(
        env=[{
            "name": "A", "value": "1",
            "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
    "a variable of a field that is not there": container(
        env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.nothing"}}}]),
    "a mount of no volume": container(volumeMounts=[{"name": "data", "mountPath": "/data"}]),
    "a mount path twice": {
        **volume({}),
        "containers": [{"name": "app", "image": "app:2", "volumeMounts": 2 * [
            {"name": "data", "mountPath": "/data"}]}]},
    "a subPath that goes up": volume({"subPath": "../a"}),
    "a volume with two sources": volume({}, emptyDir={}, hostPath={"path": "/a"}),
    "a volume twice": {**volume({}), "volumes": 2 * [{"name": "data", "emptyDir": {}}]},
    "a volume name in capitals": pod(volumes=[{"name": "Data", "emptyDir": {}}]),
    "a mode of a file above 0777": volume({}, configMap={"name": "a", "defaultMode": 1024}),
    "dnsPolicy None without servers": pod(dnsPolicy="None"),
    "an unknown dnsPolicy": pod(dnsPolicy="Cluster"),
    "four name servers": pod(
        dnsConfig={"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}),
    "a name server that is no address": pod(dnsConfig={"nameservers": ["dns"]}),
    "an unknown restartPolicy": pod(restartPolicy="always"),
    "an activeDeadlineSeconds of 0": pod(activeDeadlineSeconds=0),
    "a host alias that is no address": pod(hostAliases=[{"ip": "a", "hostnames": ["b"]}]),
    "a toleration with a value and Exists": pod(
        tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
    "a toleration of an unknown effect": pod(tolerations=[{"key": "a", "effect": "No"}]),
    "a node selector with a blank": pod(nodeSelector={"a": "b c"}),
    "an affinity of an unknown operator": pod(affinity={"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "Is", "values": ["b"]}]}]}}}),
    "a weight of 101": pod(affinity={"podAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 101, "podAffinityTerm": {"topologyKey": "a"}}]}}),
    "maxSkew 0": pod(topologySpreadConstraints=[
        {"maxSkew": 0, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]),
    "a gate with a blank": pod(readinessGates=[{"conditionType": "a b"}]),
    "preStop with two handlers": container(lifecycle={"preStop": {
        "exec": {"command": ["a"]}, "httpGet": {"port": 80}}}),
}  # fmt: skip
"""Pod specs that the API server refuses, by its own rules or by rules of the CRD."""
MORE: dict[str, Json] = {
    "a class of volumes with a blank": {"volumeClaimTemplates": [{
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "a b",
                 "resources": {"requests": {"storage": "1Gi"}}}}]},
    "a claim without an access mode": {"volumeClaimTemplates": [{
        "metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]},
    "a template of the pool that nobody runs": {
        "templatePool": {"blue": {"metadata": {"labels": {"app": "web"}},
                                  "spec": port(name="a-port-name-long")}}},
}  # fmt: skip
VALID: dict[str, Json] = {
    "nothing special": container(),
    "all of it": {
        **volume({"subPath": "a"}), "dnsPolicy": "None",
        "dnsConfig": {"nameservers": ["1.1.1.1"]}, "terminationGracePeriodSeconds": 1},
    "a probe": probe("livenessProbe", periodSeconds=1),
    "a service account that is there": pod(serviceAccountName="default"),
}  # fmt: skip


def edited(spec: Json) -> Json:
    document = tapp(replicas=2)
    document["spec"]["template"]["spec"] = copy.deepcopy(spec)
    return document


def test_plan_refuses_exactly_the_pods_that_the_api_server_refuses(
    app: App, cluster: Cluster, plugin: Plugin
) -> None:
    """The plan must refuse all invalid specs and no valid spec."""
    app.apply(tapp(replicas=2))
    app.settle()
    targets = {"kubeconfig": str(cluster.kubeconfig), "namespace": app.namespace}
    if cluster.context:
        targets["context"] = cluster.context
    session = Session(global_options=targets)
    observed = session.cluster.observe("web")

    def refusals(document: Json) -> tuple[str, ...]:
        how = applied.apply_method(session.cluster, observed, None, force=False)
        planned, refused = applied.dry_run_result(session, observed, document, how)
        return refused or try_children(session.cluster, observed, planned, 300).refused

    taken = [name for name, spec in INVALID.items() if not refusals(edited(spec))]
    assert not taken, "the plan calls these fine"
    wrong = {name: found for name, spec in VALID.items() if (found := refusals(edited(spec)))}
    assert not wrong
    for name, more in MORE.items():
        document = tapp(replicas=2)
        document["spec"] |= copy.deepcopy(more)
        assert refusals(document), name

    file = plugin.directory / "web.yaml"
    file.write_text(yaml.safe_dump(edited(INVALID["a port name of 16 characters"])))
    out = plugin.run("plan", "-f", str(file), code=1)
    assert "the API server refuses the pods of template 'default'" in out
    assert "spec.containers[0].ports[0].name" in out
    new = edited(INVALID["runAsUser -1"])
    new["metadata"]["name"] = "new"
    file.write_text(yaml.safe_dump(new))
    assert "runAsUser" in plugin.run("plan", "-f", str(file), code=1)


def test_plan_distinguishes_admission_and_rights_from_an_invalid_spec(
    app: App, plugin: Plugin
) -> None:
    """The reasons are a used-up quota, PodSecurity, a missing ServiceAccount, and a user without
    rights.
    """
    app.apply(tapp(replicas=2))
    app.settle()
    file = plugin.directory / "web.yaml"
    document = tapp(replicas=2)
    document["spec"]["template"] = template("app:2")
    document["spec"]["template"]["spec"]["hostNetwork"] = True
    file.write_text(yaml.safe_dump(document))
    plugin.run("plan", "-f", str(file))
    space = app.namespace
    plugin.shell("kubectl create quota full --hard=pods=2")
    plugin.shell(
        "for i in $(seq 60); do kubectl get quota full -o jsonpath={.status.used.pods}"
        " | grep -q . && exit 0; sleep 1; done; exit 1"
    )
    out = plugin.run("plan", "-f", str(file))
    assert "the quota of the namespace is used up now" in out
    plugin.shell("kubectl delete quota full")
    plugin.shell(f"kubectl label namespace {space} pod-security.kubernetes.io/enforce=baseline")
    assert "violates PodSecurity" in plugin.run("plan", "-f", str(file), code=1)
    plugin.shell(f"kubectl label namespace {space} pod-security.kubernetes.io/enforce-")
    document["spec"]["template"]["spec"]["serviceAccountName"] = "missing"
    file.write_text(yaml.safe_dump(document))
    out = plugin.run("plan", "-f", str(file))
    assert "Stuck" in out
    assert "missing" in out


def test_commands_work_with_kubectl_preferences_of_the_user(app: App, plugin: Plugin) -> None:
    """The preferences set `get --show-labels`, and server-side apply for the plan."""
    app.apply(tapp(replicas=2))
    app.settle()
    file, place = plugin.directory / "web.yaml", plugin.directory / "kuberc"
    file.write_text(yaml.safe_dump(tapp(replicas=2)))
    options = {"get": {"show-labels": "true"}, "apply": {"server-side": "true"}}
    preferences = {
        "apiVersion": "kubectl.config.k8s.io/v1beta1",
        "kind": "Preference",
        "defaults": [
            {"command": name, "options": [{"name": k, "default": v} for k, v in each.items()]}
            for name, each in options.items()
        ],
    }
    place.write_text(json.dumps(preferences))
    shown = plugin.shell(
        f"KUBERC={place} kubectl tapp status web && KUBERC={place} kubectl tapp list"
    )
    assert "web" in shown
    out = plugin.shell(f"KUBERC={place} kubectl tapp plan -f {file}")
    assert f"because {place} sets server-side of apply to true" in out
    plugin.shell(f"KUBERC={place} kubectl apply -f {file}")
    managers = plugin.shell(
        "kubectl get tapp web --show-managed-fields -o jsonpath='{.metadata.managedFields}'"
    )
    assert '"operation":"Apply"' in managers
    assert "error" not in plugin.shell(f"kubectl tapp list --kuberc {place}")
