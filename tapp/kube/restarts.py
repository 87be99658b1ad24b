"""Restarts by a kubelet of containers that have ended.

By the container's own policy and rules, else by the pod's policy. Source: Kubernetes'
pkg/api/v1/pod, ContainerShouldRestart; servers without the gate ContainerRestartRules (before 1.35)
drop these fields, so a pod has them only where its kubelet goes by them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

COMPLETED = ("Succeeded", "Failed")  # Phases of a pod of which nothing is started again
ALWAYS = "Always"
RESTARTING_ALL = "RestartingAllContainers"  # Why one was ended: to start all of its pod
ON_FAILURE, NEVER = "OnFailure", "Never"
POLICIES = (ALWAYS, ON_FAILURE, NEVER)
RESTART_ALL = "RestartAllContainers"  # Of a rule: starts all of the pod, init containers too
ACTIONS = ("Restart", RESTART_ALL)
OPERATORS = ("In", "NotIn")


class Rule(NamedTuple):
    """An entry of `restartPolicyRules`."""

    codes: tuple[int, ...]  # exit codes
    within: bool  # whether it is about these; else about all others
    action: str  # what follows: `Restart`, or `RestartAllContainers`


class Restarts(msgspec.Struct, frozen=True, gc=False):
    """The rules by which one container is started again."""

    policy: str = ALWAYS  # `Always`, `OnFailure` or `Never`
    rules: tuple[Rule, ...] = ()  # before the policy; the first that is about an exit code counts

    def action(self, exit_code: int) -> str:
        """The action of the first rule that is about this code; "" where none is."""
        found = (rule.action for rule in self.rules if (exit_code in rule.codes) is rule.within)
        return next(found, "")

    def follow(self, exit_code: int | None) -> bool:
        """True if it is, having ended with this code; None: by others, and counts as a failure.

        No rule is about that, as in a kubelet about a probe that fails.
        """
        if exit_code is not None and self.action(exit_code) in ACTIONS:
            return True
        return self.policy == ALWAYS or (self.policy == ON_FAILURE and exit_code != 0)


def restarts_in(spec: Mapping[str, Any], container: Mapping[str, Any]) -> Restarts:
    """The rules by which a container of this pod spec is started again."""
    return restarts_of(container, spec.get("restartPolicy") or ALWAYS)


def restarts_of(container: Mapping[str, Any], policy: str) -> Restarts:
    """The rules by which a container is started again; the pod's policy counts if it has none."""
    own = container.get("restartPolicy")
    if not isinstance(own, str) or not own:
        return Restarts(policy)
    rules = container.get("restartPolicyRules")
    found = [_rule(each) for each in rules] if isinstance(rules, list) else []
    return Restarts(own, tuple(rule for rule in found if rule is not None))


def _rule(rule: Any) -> Rule | None:
    """An entry of the list; None for one that no API server takes."""
    exits = rule.get("exitCodes") if isinstance(rule, dict) else None
    if not isinstance(exits, dict) or exits.get("operator") not in OPERATORS:
        return None
    values = exits.get("values")
    codes = [code for code in values if isinstance(code, int)] if isinstance(values, list) else []
    return Rule(tuple(codes), exits["operator"] == "In", str(rule.get("action")))
