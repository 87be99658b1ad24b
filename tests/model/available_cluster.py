"""Builds a cluster in which all instances are available, for tests of the budget, and makes small
steps.
"""

from tests.builders import template
from tests.model import specs
from tests.model.cluster import Cluster


def at_rest(replicas: int = 4, **more: object) -> Cluster:
    """Returns a cluster with a TApp of `replicas` instances that are all available.

    The TApp has `maxUnavailable: 1` and three templates. `more` has further fields of its spec.
    """
    spec = {
        "replicas": replicas,
        "template": template("app:1"),
        "templatePool": {"blue": template("app:2"), "green": template("app:3")},
        "templates": {},
        "updateStrategy": {"maxUnavailable": 1},
        **more,
    }
    cluster = Cluster(spec)
    cluster.run(30.0)
    return cluster


def restart_all(cluster: Cluster, value: str = "a") -> None:
    """Changes an environment variable of the default template, so that all its pods have to be
    replaced.
    """
    cluster.edit(lambda spec: specs.set_env(spec, "default", value))


def taken(cluster: Cluster) -> list[int]:
    return sorted(cluster.judge.outages)
