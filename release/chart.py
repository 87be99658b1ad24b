"""The Helm chart, made of what kustomize builds: its files, by name.

An object becomes a template of its own (templates.py); a component becomes a value that is true or
false; the other values are in values.py, and what they fill in places.py. The namespace is the
release's, so the chart leaves the Namespace object out.
"""

import json
from pathlib import Path

import yaml

from . import settings
from .kustomize import INSTALL, Document, components
from .listing import metadata, readme
from .places import CONDITIONS, for_each_shard, overrides
from .templates import guarded, template
from .values import commented, dump, schema, values
from .variants import choices, objects

KEPT = ("CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
"""What `helm uninstall` leaves: without the definition all TApps would go."""
POLICY = "helm.sh/resource-policy"
LEFT_OUT = ("Namespace",)
SECRETS = INSTALL / "overlays" / "least-privilege-secrets" / "cluster-role.yaml"
"""More rights of a Metacontroller that the chart brings, for bearer-token and tls-cert-manager."""
LEASES = INSTALL / "overlays" / "high-availability" / "leases.yaml"
"""More rights of it, to elect a leader."""
HANDWRITTEN = Path(__file__).parent / "helm"
"""Templates that are not made of objects."""


def files(
    version: str, image: str, repository: str, metacontroller: str, home: str = ""
) -> dict[str, str]:
    """The chart's files: path below the chart's directory -> text.

    `repository` is where the chart of Metacontroller is, `metacontroller` its version, `home` the
    project's page on a forge.
    """
    names = components()
    found = objects(names)
    (deployments,) = [variants for key, variants in found.items() if key[1] == "Deployment"]
    described = schema(names, deployments)
    defaults = values(image, names, deployments)
    listed = description(version, repository, metacontroller) | metadata(version, image, home)
    made = {
        "Chart.yaml": dump(listed),
        "README.md": readme(defaults, described),
        "values.yaml": commented(defaults, described),
        "values.schema.json": json.dumps(described, indent=2) + "\n",
        "templates/_refused.tpl": refused(settings.reasons(deployments)),
    }
    for file in HANDWRITTEN.iterdir():
        made[f"templates/{file.name}"] = file.read_text(encoding="utf-8")
    always = frozenset(choices(names))
    extra = [
        dict.fromkeys(always, document)
        for file in (SECRETS, LEASES)
        for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    ]
    filled = overrides(settings.own(deployments))
    for variants in (*found.values(), *extra):
        document = next(iter(variants.values()))
        kind, name = document["kind"], document["metadata"]["name"]
        if kind not in LEFT_OUT:
            kept = {chosen: keep(each) for chosen, each in variants.items()}
            whole = template(kept, list(choices(names)), filled.get(f"{kind}/{name}", {}))
            lines = guarded([whole.rstrip("\n")], CONDITIONS.get(f"{kind}/{name}", ""))
            if kind == "CompositeController":
                lines = for_each_shard(lines)
            made[f"templates/{kind.lower()}-{name}.yaml"] = "\n".join([*lines, ""])
    return made


def refused(reasons: dict[str, str]) -> str:
    """A template of the settings that users cannot set, each with what to do instead."""
    return f'{{{{- define "tapp.refused" -}}}}\n{json.dumps(reasons, indent=2)}\n{{{{- end -}}}}\n'


def keep(document: Document) -> Document:
    """The object as it is in the chart: some are kept when the release is uninstalled."""
    if document["kind"] not in KEPT:
        return document
    metadata = dict(document["metadata"])
    metadata["annotations"] = {
        **metadata.get("annotations", {}), POLICY: "keep"
    }  # fmt: skip
    return {**document, "metadata": metadata}


def description(version: str, repository: str, metacontroller: str) -> Document:
    """Chart.yaml."""
    return {
        "apiVersion": "v2",
        "name": "tapp",
        "description": "TApp: numbered instances with templates of their own, on Metacontroller",
        "type": "application",
        "version": version,
        "appVersion": version,
        "kubeVersion": ">=1.33.0-0",
        "dependencies": [
            {
                "name": "metacontroller-helm",
                "alias": "metacontroller",
                "version": metacontroller,
                "repository": repository,
                "condition": "metacontroller.enabled",
            }
        ],
    }
