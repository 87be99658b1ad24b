"""Pod templates with values at the limits of the API server's validation, and slightly beyond.

With these tables tests/unit/decide/test_limits.py tests the service's own validation, and
tests/e2e/test_limits.py tests that a real API server has the same limits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.builders import Document, template

OTHER: Document = {"name": "other", "image": "busybox:1"}
DIGEST = "a" * 64
PREFIX = ".".join(["p" * 63] * 3 + ["p" * 61])  # 253 characters


class Limit(NamedTuple):
    """A field of a pod template, with a value that the API server accepts, and one that it refuses.

    Attributes:
        made: returns a template whose field has the given value.
        accepted: the value that is accepted.
        refused: the value that is refused.
        where: the beginning of the message about the refused value.
    """

    made: Callable[[Any], Document]  # returns the template with the value
    accepted: Any
    refused: Any
    where: str  # the place in the message


def _container(**fields: Any) -> Document:
    return template("nginx:2", container={"command": ["run"], **fields})


def _spec(**fields: Any) -> Document:
    return template("nginx:2", container={"command": ["run"]}, **fields)


def _sidecar(**fields: Any) -> Document:
    return _spec(sidecars=[{**OTHER, **fields}])


def _init(**fields: Any) -> Document:
    return _spec(initContainers=[{**OTHER, **fields}])


def _nodes(expression: Document) -> Document:
    """Returns an affinity to nodes that match an expression."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


LIMITS: dict[str, Limit] = {
    "the value of a label": Limit(
        lambda v: template("nginx:2", labels={"app": v}),
        "v" * 63, "v" * 64, "metadata.labels['app'] is",
    ),
    "a letter in the value of a label": Limit(
        lambda v: template("nginx:2", labels={"app": v}),
        "a_B.c-d", "a/b", "metadata.labels['app'] is 'a/b'",
    ),
    "the end of the value of a label": Limit(
        lambda v: template("nginx:2", labels={"app": v}),
        "a", "a-", "metadata.labels['app'] is 'a-'",
    ),
    "the key of a label": Limit(
        lambda v: template("nginx:2", labels={"app": "web", v: "x"}),
        "k" * 63, "k" * 64, "metadata.labels has the key",
    ),
    "the prefix of a label": Limit(
        lambda v: template("nginx:2", labels={"app": "web", v: "x"}),
        f"{PREFIX}/k", f"{PREFIX}p/k", "metadata.labels has the key",
    ),
    "a capital prefix of a label": Limit(
        lambda v: template("nginx:2", labels={"app": "web", v: "x"}),
        "example.com/K", "Example.com/K", "metadata.labels has the key 'Example.com/K'",
    ),
    "the key of an annotation": Limit(
        lambda v: template("nginx:2", annotations={v: "any text/at all "}),
        "k" * 63, "k" * 64, "metadata.annotations has the key",
    ),
    "two slashes in the key of an annotation": Limit(
        lambda v: template("nginx:2", annotations={v: ""}),
        "Example.com/K", "a/b/c", "metadata.annotations has the key 'a/b/c'",
    ),
    "a finalizer": Limit(
        lambda v: {**_spec(), "metadata": {"labels": {"app": "web"}, "finalizers": [v]}},
        "example.com/done", "done", "metadata.finalizers[0] is 'done'",
    ),
    "the host name": Limit(
        lambda v: _spec(hostname=v), "h" * 63, "h" * 64, "spec.hostname is"
    ),
    "a dot in the host name": Limit(
        lambda v: _spec(hostname=v), "a-b", "a.b", "spec.hostname is 'a.b'"
    ),
    "the subdomain": Limit(
        lambda v: _spec(subdomain=v), "h" * 63, "h" * 64, "spec.subdomain is"
    ),
    "the name of a container": Limit(
        lambda v: _sidecar(name=v), "c" * 63, "c" * 64, "spec.containers[1].name is"
    ),
    "a capital name of an init container": Limit(
        lambda v: _init(name=v), "init", "Init", "spec.initContainers[0].name is 'Init'"
    ),
    "the name of a port": Limit(
        lambda v: _container(ports=[{"name": v, "containerPort": 80}]),
        "p" * 15, "p" * 16, "spec.containers[0].ports[0].name is",
    ),
    "a port's name without a letter": Limit(
        lambda v: _container(ports=[{"name": v, "containerPort": 80}]),
        "8a", "80", "spec.containers[0].ports[0].name is '80'",
    ),
    "two dashes in a port's name": Limit(
        lambda v: _container(ports=[{"name": v, "containerPort": 80}]),
        "a-b", "a--b", "spec.containers[0].ports[0].name is 'a--b'",
    ),
    "the number of a port": Limit(
        lambda v: _container(ports=[{"containerPort": v}]),
        65_535, 65_536, "spec.containers[0].ports[0].containerPort is 65536",
    ),
    "the number of a port of the node": Limit(
        lambda v: _container(ports=[{"containerPort": 80, "hostPort": v}]),
        65_535, -1, "spec.containers[0].ports[0].hostPort is -1",
    ),
    "the name of a variable": Limit(
        lambda v: _container(env=[{"name": v, "value": "x"}]),
        "1 strange/name!", "a=b", "spec.containers[0].env[0].name is 'a=b'",
    ),
    "the key of a ConfigMap": Limit(
        lambda v: _container(
            env=[{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": v}}}]
        ),
        "k" * 253, "k" * 254, "spec.containers[0].env[0].valueFrom.configMapKeyRef.key is",
    ),
    "the name of a Secret": Limit(
        lambda v: _container(
            env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": v, "key": "k"}}}]
        ),
        "s" * 253, "s" * 254, "spec.containers[0].env[0].valueFrom.secretKeyRef.name is",
    ),
    "the name of a volume": Limit(
        lambda v: _spec(volumes=[{"name": v, "emptyDir": {}}]),
        "v" * 63, "v" * 64, "spec.volumes[0].name is",
    ),
    "a user": Limit(
        lambda v: _spec(securityContext={"runAsUser": v}),
        2**31 - 1, 2**31, "spec.securityContext.runAsUser is 2147483648",
    ),
    "a negative group of a container": Limit(
        lambda v: _container(securityContext={"runAsGroup": v}),
        0, -1, "spec.containers[0].securityContext.runAsGroup is -1",
    ),
    "a label of a node": Limit(
        lambda v: _spec(nodeSelector={"zone": v}),
        "z" * 63, "z" * 64, "spec.nodeSelector['zone'] is",
    ),
    "the name of a node": Limit(
        lambda v: _spec(nodeName=v), "n" * 253, "n" * 254, "spec.nodeName is"
    ),
    "the name of a runtime class": Limit(
        lambda v: _spec(runtimeClassName=v), None, "Kata", "spec.runtimeClassName is 'Kata'"
    ),
    "a readiness gate": Limit(
        lambda v: _spec(readinessGates=[{"conditionType": v}]),
        "g" * 63, "g" * 64, "spec.readinessGates[0].conditionType is",
    ),
    "a scheduling gate": Limit(
        lambda v: _spec(schedulingGates=[{"name": v}]),
        "g" * 63, "g" * 64, "spec.schedulingGates[0].name is",
    ),
    "a resource claim": Limit(
        lambda v: _spec(resourceClaims=[{"name": v, "resourceClaimName": "c"}]),
        "c" * 63, "c" * 64, "spec.resourceClaims[0].name is",
    ),
    "a host's alias": Limit(
        lambda v: _spec(hostAliases=[{"ip": "10.0.0.1", "hostnames": [v]}]),
        "a.b", "a_b", "spec.hostAliases[0].hostnames[0] is 'a_b'",
    ),
    "the key of a toleration": Limit(
        lambda v: _spec(tolerations=[{"key": v, "operator": "Exists"}]),
        "t" * 63, "t" * 64, "spec.tolerations[0].key is",
    ),
    "the deadline": Limit(
        lambda v: _spec(activeDeadlineSeconds=v), 1, 0, "spec.activeDeadlineSeconds is 0"
    ),
    "the service account": Limit(
        lambda v: _spec(serviceAccountName=v), None, "Robot", "spec.serviceAccountName is 'Robot'"
    ),
    "a pull policy": Limit(
        lambda v: _container(imagePullPolicy=v),
        "Never", "always", "spec.containers[0].imagePullPolicy is 'always'",
    ),
    "a policy of termination messages": Limit(
        lambda v: _container(terminationMessagePolicy=v),
        "File", "Log", "spec.containers[0].terminationMessagePolicy is 'Log'",
    ),
    "the protocol of a port": Limit(
        lambda v: _container(ports=[{"containerPort": 80, "protocol": v}]),
        "SCTP", "tcp", "spec.containers[0].ports[0].protocol is 'tcp'",
    ),
    "a port of the node in the network of the node": Limit(
        lambda v: template(
            container={"ports": [{"containerPort": 80, "hostPort": v}]}, hostNetwork=True
        ),
        80, 81, "spec has hostNetwork: true, and then the hostPort 81",
    ),
    "the successes of a liveness probe": Limit(
        lambda v: _container(livenessProbe={"tcpSocket": {"port": 80}, "successThreshold": v}),
        1, 2, "spec.containers[0].livenessProbe.successThreshold is 2",
    ),
    "the successes of a startup probe": Limit(
        lambda v: _container(startupProbe={"tcpSocket": {"port": 80}, "successThreshold": v}),
        1, 2, "spec.containers[0].startupProbe.successThreshold is 2",
    ),
    "the period of a probe": Limit(
        lambda v: _container(readinessProbe={"tcpSocket": {"port": 80}, "periodSeconds": v}),
        0, -1, "spec.containers[0].readinessProbe.periodSeconds is -1",
    ),
    "the port of a probe": Limit(
        lambda v: _container(readinessProbe={"httpGet": {"port": v}}),
        "http", "8080", "spec.containers[0].readinessProbe.httpGet.port is '8080'",
    ),
    "the scheme of a probe": Limit(
        lambda v: _container(readinessProbe={"httpGet": {"port": 80, "scheme": v}}),
        "HTTPS", "https", "spec.containers[0].readinessProbe.httpGet.scheme is 'https'",
    ),
    "two handlers of a probe": Limit(
        lambda v: _container(readinessProbe=v),
        {"tcpSocket": {"port": 80}}, {"tcpSocket": {"port": 80}, "exec": {"command": ["a"]}},
        "spec.containers[0].readinessProbe has exec, tcpSocket",
    ),
    "a probe without a handler": Limit(
        lambda v: _container(readinessProbe=v),
        {"grpc": {"port": 80}}, {"periodSeconds": 5},
        "spec.containers[0].readinessProbe has no handler",
    ),
    "the grace period of a probe": Limit(
        lambda v: _container(livenessProbe={
            "tcpSocket": {"port": 80}, "terminationGracePeriodSeconds": v}),
        1, 0, "spec.containers[0].livenessProbe.terminationGracePeriodSeconds is 0",
    ),
    "a grace period of a readiness probe": Limit(
        lambda v: _container(readinessProbe={"tcpSocket": {"port": 80}, **v}),
        {}, {"terminationGracePeriodSeconds": 5},
        "spec.containers[0].readinessProbe has terminationGracePeriodSeconds",
    ),
    "two handlers of a hook": Limit(
        lambda v: _container(lifecycle={"preStop": v}),
        {"sleep": {"seconds": 1}}, {"sleep": {"seconds": 1}, "httpGet": {"port": 80}},
        "spec.containers[0].lifecycle.preStop has httpGet, sleep",
    ),
    "a probe of an init container": Limit(
        lambda v: _init(readinessProbe={"tcpSocket": {"port": 80}}, **v),
        {"restartPolicy": "Always"}, {}, "spec.initContainers[0] has readinessProbe",
    ),
    "value and source of a variable": Limit(
        lambda v: _container(env=[{
            "name": "A", "value": v, "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]),
        "", "1", "spec.containers[0].env[0] has value and valueFrom",
    ),
    "two sources of a variable": Limit(
        lambda v: _container(env=[{"name": "A", "valueFrom": {
            "fieldRef": {"fieldPath": "metadata.name"}, **v}}]),
        {}, {"secretKeyRef": {"name": "s", "key": "k"}},
        "spec.containers[0].env[0].valueFrom has fieldRef, secretKeyRef",
    ),
    "the field that a variable reads": Limit(
        lambda v: _container(env=[{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": v}}}]),
        "metadata.annotations['a/b']", "status.podIp",
        "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath is 'status.podIp'",
    ),
    "a path in a volume": Limit(
        lambda v: _spec(
            volumes=[{"name": "a", "emptyDir": {}}],
            sidecars=[{**OTHER, "volumeMounts": [
                {"name": "a", "mountPath": "/a", "subPath": v}]}]),
        "a/..b", "a/../b", "spec.containers[1].volumeMounts[0].subPath is 'a/../b'",
    ),
    "two kinds of a volume": Limit(
        lambda v: _spec(volumes=[{"name": "a", "emptyDir": {}, **v}]),
        {}, {"hostPath": {"path": "/a"}}, "spec.volumes[0] has emptyDir, hostPath",
    ),
    "the mode of files": Limit(
        lambda v: _spec(volumes=[{"name": "a", "configMap": {"name": "c", "defaultMode": v}}]),
        0o777, 0o1000, "spec.volumes[0].configMap.defaultMode is 512",
    ),
    "the type of a path of the node": Limit(
        lambda v: _spec(volumes=[{"name": "a", "hostPath": {"path": "/a", "type": v}}]),
        "Directory", "Folder", "spec.volumes[0].hostPath.type is 'Folder'",
    ),
    "a request above its limit": Limit(
        lambda v: _container(resources={"requests": {"cpu": v}, "limits": {"cpu": "1"}}),
        "1000m", "2", "spec.containers[0].resources has more requests than limits of 'cpu'",
    ),
    "a negative request": Limit(
        lambda v: _container(resources={"requests": {"memory": v}}),
        "1e3", "-1", "spec.containers[0].resources has requests of 'memory' '-1'",
    ),
    "a resource that no node has": Limit(
        lambda v: _container(resources={"limits": {v: "1"}}),
        "kubernetes.io/batch-cpu", "gpu", "spec.containers[0].resources has limits of 'gpu' '1'",
    ),
    "a device without a limit": Limit(
        lambda v: _container(resources={"requests": {"example.com/gpu": "1"}, **v}),
        {"limits": {"example.com/gpu": "1"}}, {},
        "spec.containers[0].resources has requests of 'example.com/gpu'",
    ),
    "half a device": Limit(
        lambda v: _container(resources={"limits": {"example.com/gpu": v}}),
        "1", "500m", "spec.containers[0].resources has limits of 'example.com/gpu' '500m'",
    ),
    "the resource of a resize policy": Limit(
        lambda v: _container(
            resizePolicy=[{"resourceName": v, "restartPolicy": "NotRequired"}]),
        "cpu", "disk", "spec.containers[0].resizePolicy[0].resourceName is 'disk'",
    ),
    "privileges without escalation": Limit(
        lambda v: _container(
            securityContext={"privileged": True, "allowPrivilegeEscalation": v}),
        True, False, "spec.containers[0].securityContext has privileged: true",
    ),
    "a seccomp profile": Limit(
        lambda v: _container(securityContext={"seccompProfile": {"type": v}}),
        "RuntimeDefault", "Default", "spec.containers[0].securityContext.seccompProfile.type is",
    ),
    "a seccomp profile without its file": Limit(
        lambda v: _spec(securityContext={"seccompProfile": {"type": "Localhost", **v}}),
        {"localhostProfile": "a/b"}, {},
        "spec.securityContext.seccompProfile has type Localhost",
    ),
    "a kernel parameter": Limit(
        lambda v: _spec(securityContext={"sysctls": [{"name": v, "value": "1"}]}),
        "net/ipv4/tcp_syncookies", "A B", "spec.securityContext.sysctls[0].name is 'A B'",
    ),
    "a supplemental group": Limit(
        lambda v: _spec(securityContext={"supplementalGroups": [v]}),
        0, -1, "spec.securityContext.supplementalGroups[0] is -1",
    ),
    "when volumes change their group": Limit(
        lambda v: _spec(securityContext={"fsGroup": 1, "fsGroupChangePolicy": v}),
        "Always", "Never", "spec.securityContext.fsGroupChangePolicy is 'Never'",
    ),
    "the restart policy": Limit(
        lambda v: _spec(restartPolicy=v), "Never", "never", "spec.restartPolicy is 'never'"
    ),
    "the DNS policy": Limit(
        lambda v: _spec(dnsPolicy=v), "Default", "Cluster", "spec.dnsPolicy is 'Cluster'"
    ),
    "no name server": Limit(
        lambda v: _spec(dnsPolicy="None", **v),
        {"dnsConfig": {"nameservers": ["10.0.0.53"]}}, {}, "spec has dnsPolicy: None",
    ),
    "the number of name servers": Limit(
        lambda v: _spec(dnsConfig={"nameservers": v}),
        ["1.1.1.1", "::1", "1.1.1.3"], ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"],
        "spec.dnsConfig has 4 nameservers",
    ),
    "the address of a name server": Limit(
        lambda v: _spec(dnsConfig={"nameservers": [v]}),
        "fe80::1", "fe80::1%eth0", "spec.dnsConfig.nameservers[0] is 'fe80::1%eth0'",
    ),
    "the address of a host's alias": Limit(
        lambda v: _spec(hostAliases=[{"ip": v, "hostnames": ["a"]}]),
        "255.0.0.1", "256.0.0.1", "spec.hostAliases[0].ip is '256.0.0.1'",
    ),
    "the value of a toleration": Limit(
        lambda v: _spec(tolerations=[{"key": "a", "operator": "Exists", "value": v}]),
        "", "b", "spec.tolerations[0] has value 'b'",
    ),
    "the effect of a toleration": Limit(
        lambda v: _spec(tolerations=[{"key": "a", "operator": "Exists", "effect": v}]),
        "NoExecute", "NoRun", "spec.tolerations[0].effect is 'NoRun'",
    ),
    "the seconds of a toleration": Limit(
        lambda v: _spec(tolerations=[
            {"key": "a", "operator": "Exists", "effect": v, "tolerationSeconds": 5}]),
        "NoExecute", "NoSchedule", "spec.tolerations[0] has tolerationSeconds",
    ),
    "a toleration without a key": Limit(
        lambda v: _spec(tolerations=[{"operator": v}]),
        "Exists", "Equal", "spec.tolerations[0] has no key",
    ),
    "the operator of an affinity": Limit(
        lambda v: _spec(affinity=_nodes({"key": "a", "operator": v, "values": ["1"]})),
        "Gt", "Is",
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchExpressions[0].operator is 'Is'",
    ),
    "the values of an affinity": Limit(
        lambda v: _spec(affinity=_nodes({"key": "a", "operator": "In", "values": v})),
        ["b"], [],
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        ".nodeSelectorTerms[0].matchExpressions[0] has operator In",
    ),
    "a weight": Limit(
        lambda v: _spec(affinity={"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": v, "podAffinityTerm": {"topologyKey": "a"}}]}}),
        100, 101,
        "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
        ".weight is 101",
    ),
    "a skew": Limit(
        lambda v: _spec(topologySpreadConstraints=[
            {"maxSkew": v, "topologyKey": "a", "whenUnsatisfiable": "DoNotSchedule"}]),
        1, 0, "spec.topologySpreadConstraints[0].maxSkew is 0",
    ),
    "the action of a spread constraint": Limit(
        lambda v: _spec(topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": v}]),
        "ScheduleAnyway", "Ignore", "spec.topologySpreadConstraints[0].whenUnsatisfiable is",
    ),
    "the domains of a spread constraint": Limit(
        lambda v: _spec(topologySpreadConstraints=[
            {"maxSkew": 1, "topologyKey": "a", "minDomains": 2, "whenUnsatisfiable": v}]),
        "DoNotSchedule", "ScheduleAnyway", "spec.topologySpreadConstraints[0] has minDomains",
    ),
    "a probe without a command": Limit(
        lambda v: _container(livenessProbe={"exec": v}),
        {"command": ["a"]}, {}, "spec.containers[0].livenessProbe.exec has no command",
    ),
    "a header of a probe": Limit(
        lambda v: _container(livenessProbe={
            "httpGet": {"port": 80, "httpHeaders": [{"name": v, "value": "x"}]}}),
        "X-A1", "X A", "spec.containers[0].livenessProbe.httpGet.httpHeaders[0].name is 'X A'",
    ),
    "the resource that a variable reads": Limit(
        lambda v: _container(env=[{"name": "A", "valueFrom": {"resourceFieldRef": {
            "resource": v}}}]),
        "requests.hugepages-2Mi", "limits.disk",
        "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource is 'limits.disk'",
    ),
    "two sources of variables": Limit(
        lambda v: _container(envFrom=[{"secretRef": {"name": "a"}, **v}]),
        {}, {"configMapRef": {"name": "b"}},
        "spec.containers[0].envFrom[0] has configMapRef, secretRef",
    ),
    "the prefix of variables": Limit(
        lambda v: _container(envFrom=[{"secretRef": {"name": "a"}, "prefix": v}]),
        "a b", "a=b", "spec.containers[0].envFrom[0].prefix is 'a=b'",
    ),
    "a mount without a path": Limit(
        lambda v: _spec(
            volumes=[{"name": "a", "emptyDir": {}}],
            sidecars=[{**OTHER, "volumeMounts": [{"name": "a", "mountPath": v}]}]),
        "a", "", "spec.containers[1].volumeMounts[0] has no mountPath",
    ),
    "mounts that reach the node": Limit(
        lambda v: _spec(
            volumes=[{"name": "a", "hostPath": {"path": "/a"}}],
            sidecars=[{
                **OTHER,
                "securityContext": {"privileged": v},
                "volumeMounts": [
                    {"name": "a", "mountPath": "/a", "mountPropagation": "Bidirectional"}]}]),
        True, False, "spec.containers[1] has mountPropagation: Bidirectional",
    ),
    "rules for restarts": Limit(
        lambda v: _container(
            restartPolicyRules=[
                {"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}], **v),
        {"restartPolicy": "Never"}, {}, "spec.containers[0] has restartPolicyRules",
    ),
    "a resize with a restart": Limit(
        lambda v: _container(resizePolicy=[
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"}])
        | {"spec": {**_container(resizePolicy=[
            {"resourceName": "cpu", "restartPolicy": "RestartContainer"}])["spec"],
            "restartPolicy": v}},
        "Always", "Never", "spec has restartPolicy: Never, and then the resizePolicy of container",
    ),
    "a resource claim that the pod lacks": Limit(
        lambda v: _container(resources={"claims": [{"name": "gpu"}]})
        | {"spec": {**_container(resources={"claims": [{"name": "gpu"}]})["spec"],
            "resourceClaims": [{"name": v, "resourceClaimName": "c"}]}},
        "gpu", "tpu", "spec has no resource claim 'gpu', which container 'app' uses",
    ),
    "a hook that sleeps": Limit(
        lambda v: _spec(
            terminationGracePeriodSeconds=5,
            sidecars=[{**OTHER, "lifecycle": {"preStop": {"sleep": {"seconds": v}}}}]),
        5, 6, "spec has a hook of container 'other' that sleeps 6 seconds",
    ),
    "a volume without its ConfigMap": Limit(
        lambda v: _spec(volumes=[{"name": "a", "configMap": v}]),
        {"name": "c"}, {}, "spec.volumes[0].configMap has no name",
    ),
    "a volume without its Secret": Limit(
        lambda v: _spec(volumes=[{"name": "a", "secret": v}]),
        {"secretName": "c"}, {}, "spec.volumes[0].secret has no secretName",
    ),
    "the path of a file": Limit(
        lambda v: _spec(volumes=[
            {"name": "a", "configMap": {"name": "c", "items": [{"key": "k", "path": v}]}}]),
        "a/b", "/a", "spec.volumes[0].configMap.items[0].path is '/a'",
    ),
    "the field that a file has": Limit(
        lambda v: _spec(volumes=[{"name": "a", "downwardAPI": {"items": [
            {"path": "f", "fieldRef": {"fieldPath": v}}]}}]),
        "metadata.labels", "spec.nodeName",
        "spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath is 'spec.nodeName'",
    ),
    "the container whose resource a file has": Limit(
        lambda v: _spec(volumes=[{"name": "a", "downwardAPI": {"items": [
            {"path": "f", "resourceFieldRef": {"resource": "limits.cpu", **v}}]}}]),
        {"containerName": "app"}, {},
        "spec.volumes[0].downwardAPI.items[0].resourceFieldRef has no containerName",
    ),
    "two sources of a projected volume": Limit(
        lambda v: _spec(volumes=[{"name": "a", "projected": {"sources": [
            {"secret": {"name": "s"}, **v}]}}]),
        {}, {"configMap": {"name": "c"}},
        "spec.volumes[0].projected.sources[0] has configMap, secret",
    ),
    "the access mode of an ephemeral volume": Limit(
        lambda v: _spec(volumes=[{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": [v], "resources": {"requests": {"storage": "1Gi"}}}}}}]),
        "ReadWriteOncePod", "RWO",
        "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes[0] is 'RWO'",
    ),
    "the size of a directory": Limit(
        lambda v: _spec(volumes=[{"name": "a", "emptyDir": {"sizeLimit": v}}]),
        "0", "-1", "spec.volumes[0].emptyDir.sizeLimit is '-1'",
    ),
    "the operating system": Limit(
        lambda v: _spec(os={"name": v}), "linux", "macos", "spec.os.name is 'macos'"
    ),
    "processes that are shared twice": Limit(
        lambda v: _spec(shareProcessNamespace=True, hostPID=v),
        False, True, "spec has shareProcessNamespace: true and hostPID: true",
    ),
    "the topology of an affinity": Limit(
        lambda v: _spec(affinity={"podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": v}]}}),
        "kubernetes.io/hostname", "",
        "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
        " has no topologyKey",
    ),
    "no term of an affinity": Limit(
        lambda v: _spec(affinity={"nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": v}}}),
        [{}], [],
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
        " has no nodeSelectorTerms",
    ),
    "no image": Limit(
        lambda v: _sidecar(image=v), "busybox", "", "spec.containers[1].image is"
    ),
}  # fmt: skip
"""Description of a rule -> a field and its values on both sides of the rule."""

IMAGES: dict[str, tuple[str, str]] = {
    "a capital letter": ("Registry.example/web:2", "Web:2"),
    "a blank": ("web:2", "web: 2"),
    "a tag": (f"web:{'t' * 128}", f"web:{'t' * 129}"),
    "an empty tag": ("web", "web:"),
    "a tag's first letter": ("web:_1", "web:-1"),
    "a short digest": (f"web@sha256:{DIGEST}", f"web@sha256:{DIGEST[1:]}"),
    "a capital digest": (f"web:2@sha256:{DIGEST}", f"web:2@sha256:{DIGEST.upper()}"),
    "a digest that nobody can check": (f"web@sha512:{DIGEST * 2}", f"web@md5:{DIGEST}"),
    "a registry's port": ("registry:5000/web", "registry:port/web"),
    "a long path": (f"r.io/{'p' * 255}", f"r.io/{'p' * 256}"),
    "a long path on the Hub": ("p" * 247, "p" * 248),
    "an image's id": ("0" * 63, "0" * 64),
    "a slash at the end": ("a/b", "a/b/"),
    "a scheme": ("docker.io/web", "docker://web"),
}
"""Description of a rule -> an image that a kubelet accepts, and a similar image that it never
starts.
"""
