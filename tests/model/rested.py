"""A cluster in which everything is available, and short steps for tests of the budget."""

from tests.builders import template
from tests.model import specs
from tests.model.cluster import Cluster


def at_rest(replicas: int = 4, **more: object) -> Cluster:
    """Returns a settled TApp with `maxUnavailable: 1`, whose instances are all available."""
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
    """Changes an environment variable of the template, so that every pod has to be replaced."""
    cluster.edit(lambda spec: specs.set_env(spec, "default", value))


def taken(cluster: Cluster) -> list[int]:
    return sorted(cluster.judge.outages)
