"""Pod templates that the API server refuses (`INVALID`), and similar ones that it accepts
(`VALID`).

`INVALID` maps a description to the template and a part of the message about it.
"""

from typing import Any

from tests.builders import Document, claim_template, template

MOUNT = {"name": "logs", "mountPath": "/logs"}
OTHER = {"name": "other", "image": "busybox:1"}
SPREAD = {"topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "maxSkew": 1}
VALID: dict[str, Document] = {
    "port with two protocols": template(
        container={
            "ports": [
                {"name": "dns", "containerPort": 53, "protocol": "UDP", "hostPort": 53},
                {"name": "dns-tcp", "containerPort": 53, "protocol": "TCP", "hostPort": 53},
            ]
        }
    ),
    "port name in two containers": template(
        container={"ports": [{"name": "http", "containerPort": 80}]},
        sidecars=[{**OTHER, "ports": [{"name": "http", "containerPort": 81}]}],
    ),
    "mount path in two containers": template(
        container={"volumeMounts": [MOUNT]},
        sidecars=[{**OTHER, "volumeMounts": [MOUNT]}],
        volumes=[{"name": "logs", "emptyDir": {}}],
    ),
    "mount path with and without a slash": template(
        container={"volumeMounts": [MOUNT, {"name": "logs", "mountPath": "/logs/"}]},
        volumes=[{"name": "logs", "emptyDir": {}}],
    ),
    "host port in two init containers": template(
        initContainers=[
            {**OTHER, "ports": [{"containerPort": 80, "hostPort": 80}]},
            {**OTHER, "name": "next", "ports": [{"containerPort": 80, "hostPort": 80}]},
        ]
    ),
    "ephemeral volume as a device": template(
        container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/x"}]},
        volumes=[
            {
                "name": "raw",
                "ephemeral": {"volumeClaimTemplate": {"spec": claim_template()["spec"]}},
            }
        ],
    ),
}


def template_with_mounts(*names: str, image: str = "nginx:1", **spec: Any) -> Document:
    """Returns a template whose container mounts the volumes with these names.

    The image is also an argument of the command, so a change of the image is never an update in
    place. `spec` has further fields of the pod spec, for example the volumes.
    """
    mounts = [{"name": name, "mountPath": f"/{name}"} for name in names]
    return template(image, container={"volumeMounts": mounts, "command": ["run", image]}, **spec)


INVALID: dict[str, tuple[Document, str]] = {
    "mount of an unknown volume": (template_with_mounts("logs"), "container 'app' mounts 'logs'"),
    "mount of an unknown volume in an init container": (
        template("nginx:2", initContainers=[{**OTHER, "volumeMounts": [MOUNT]}]),
        "container 'other' mounts 'logs'",
    ),
    "device of an unknown volume": (
        template(container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/x"}]}),
        "container 'app' mounts 'raw'",
    ),
    "device of a volume that is no claim": (
        template(
            container={"volumeDevices": [{"name": "raw", "devicePath": "/dev/x"}]},
            volumes=[{"name": "raw", "emptyDir": {}}],
        ),
        "volumeDevices has 'raw', and that volume is not a claim",
    ),
    "device twice": (
        template(
            container={
                "volumeDevices": [
                    {"name": "raw", "devicePath": "/dev/x"},
                    {"name": "raw", "devicePath": "/dev/y"},
                ]
            },
            volumes=[{"name": "raw", "persistentVolumeClaim": {"claimName": "raw"}}],
        ),
        "spec.containers['app'].volumeDevices has the name 'raw' twice",
    ),
    "mount path twice": (
        template(
            container={"volumeMounts": [MOUNT, MOUNT]}, volumes=[{"name": "logs", "emptyDir": {}}]
        ),
        "spec.containers['app'].volumeMounts has the mountPath '/logs' twice",
    ),
    "volume as mount and device": (
        template(
            container={
                "volumeMounts": [MOUNT],
                "volumeDevices": [{"name": "logs", "devicePath": "/dev/x"}],
            },
            volumes=[{"name": "logs", "persistentVolumeClaim": {"claimName": "logs"}}],
        ),
        "volumeMounts has 'logs', and so has volumeDevices",
    ),
    "container name twice": (
        template(sidecars=[OTHER, OTHER]),
        "spec.containers[2].name 'other' is used",
    ),
    "same name of container and init container": (
        template(sidecars=[OTHER], initContainers=[OTHER]),
        "spec.initContainers[0].name 'other' is used",
    ),
    "volume name twice": (
        template(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
        "spec.volumes[1].name 'a' is used",
    ),
    "port name twice": (
        template(
            container={
                "ports": [
                    {"name": "http", "containerPort": 80},
                    {"name": "http", "containerPort": 81},
                ]
            }
        ),
        "spec.containers['app'].ports has the name 'http' twice",
    ),
    "host port twice": (
        template(
            container={"ports": [{"containerPort": 80, "hostPort": 80}]},
            sidecars=[{**OTHER, "ports": [{"containerPort": 81, "hostPort": 80}]}],
        ),
        "hostPort '80/TCP' of container 'other' is requested twice",
    ),
    "port twice with hostNetwork": (
        template(
            container={"ports": [{"containerPort": 80}]},
            sidecars=[{**OTHER, "ports": [{"containerPort": 80}]}],
            hostNetwork=True,
        ),
        "hostPort '80/TCP' of container 'other' is requested twice",
    ),
    "resource claim twice": (
        template(resourceClaims=[{"name": "gpu", "resourceClaimName": "g"}] * 2),
        "spec.resourceClaims has the name 'gpu' twice",
    ),
    "scheduling gate twice": (
        template(schedulingGates=[{"name": "example.com/a"}] * 2),
        "spec.schedulingGates has the name 'example.com/a' twice",
    ),
    "spread constraint twice": (
        template(topologySpreadConstraints=[SPREAD, {**SPREAD, "maxSkew": 2}]),
        "topologySpreadConstraints has the topologyKey and whenUnsatisfiable 'zone', "
        "'ScheduleAnyway' twice",
    ),
    "resize policy twice": (
        template(
            container={
                "resizePolicy": [
                    {"resourceName": "cpu", "restartPolicy": "NotRequired"},
                    {"resourceName": "cpu", "restartPolicy": "RestartContainer"},
                ]
            }
        ),
        "spec.containers['app'].resizePolicy has the resourceName 'cpu' twice",
    ),
    "sysctl twice": (
        template(securityContext={"sysctls": [{"name": "net.a", "value": "1"}] * 2}),
        "spec.securityContext.sysctls has the name 'net.a' twice",
    ),
}
