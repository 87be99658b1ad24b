"""The chart's value `settings`: environment variables, as hooks/service/settings.py has them."""

from typing import Any

from hooks.service.settings import Settings

from .kustomize import Document
from .variants import Chosen, Variants, camel

PREFIX = str(Settings.model_config["env_prefix"])
OTHERS: dict[str, Document] = {
    "WEB_CONCURRENCY": {
        "description": "Worker processes in each pod",
        "type": ["integer", "string", "null"],
        "minimum": 1,
        "pattern": "^[1-9][0-9]*$",
    },
    "HOST": {
        "description": 'Address to listen on; "[::]" where pods have IPv6 alone',
        "type": ["string", "null"],
    },
}
"""Those that gunicorn.conf.py reads, and that a user may set."""
LEVELS = ("debug", "info", "warning", "error")
"""Of TAPP_LOG_LEVEL, which the service takes in any case."""
FILES = ("TAPP_TLS_CLIENT_CA_FILE",)
"""The name of a file, read by gunicorn.conf.py."""


def environment(deployment: Document) -> dict[str, str]:
    """The variables that a Deployment sets, by name."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


def own(deployments: Variants) -> dict[str, str]:
    """The variables that the manifests set and no component changes: the value's default."""
    refused = reasons(deployments)
    base = environment(deployments[frozenset()])
    return {name: value for name, value in base.items() if name not in refused}


def reasons(deployments: Variants) -> dict[str, str]:
    """Variables that are not for a user to set -> what to do instead, after the variable's name."""
    files = [name for name, field in fields().items() if "path" in str(field)]
    mounted = "names what this chart does not mount: patch the manifests with kustomize instead"
    found = dict.fromkeys((*files, *FILES), mounted)
    base = environment(deployments[Chosen()])
    for chosen, deployment in deployments.items():
        if len(chosen) != 1:
            continue
        (component,) = chosen
        flag = f"components.{camel(component)}"
        for name, value in environment(deployment).items():
            if base.get(name) != value:
                found[name] = f"is set by {flag}: switch that on or off"
    return found


def fields() -> dict[str, Document]:
    """The service's own settings: variable -> its JSON schema, as pydantic makes it."""
    properties = Settings.model_json_schema()["properties"]
    return {f"{PREFIX}{name.upper()}": field for name, field in properties.items()}


def schema(deployments: Variants) -> Document:
    """The value's schema. What checks.yaml refuses is in it, so that its message is shown."""
    refused = reasons(deployments)
    known = {name: setting(field) for name, field in fields().items()} | OTHERS
    known[f"{PREFIX}LOG_LEVEL"]["enum"] = [*LEVELS, *map(str.upper, LEVELS), None]
    properties: dict[str, Any] = {
        name: field for name, field in known.items() if name not in refused
    }
    for name, why in refused.items():
        properties[name] = {"description": f"Refused: {why}"}
    return {
        "description": "Environment variables of the service",
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
    }


def setting(field: Document) -> Document:
    """The schema of one setting as people write it: numbers and booleans may stand in quotes.

    `null` removes it, where another file of values has set it.
    """
    kinds: dict[object, Document] = {
        "integer": {
            "type": ["integer", "string", "null"],
            "minimum": field.get("minimum"),
            "pattern": "^[0-9]+$",
        },
        "boolean": {"enum": [True, False, "true", "false", None]},
    }
    kind = kinds.get(field.get("type"), {"type": ["string", "null"]})
    described = {"description": field["description"].rstrip(".")}
    return {**described, **kind, "default": field.get("default")}
