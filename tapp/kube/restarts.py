"""Rules by which a kubelet restarts containers that have ended.

A container's own policy and rules decide. If the container has no policy, the pod's policy decides
(pkg/api/v1/pod, ContainerShouldRestart). API servers without the feature gate ContainerRestartRules
(before 1.35) drop policies and rules of containers. So a pod has them only if its kubelet follows
them.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

# Phases of a pod whose containers never restart.
COMPLETED = ("Succeeded", "Failed")
ALWAYS = "Always"
# Reason in the state of a container that the kubelet stopped to restart all containers of its pod.
RESTARTING_ALL = "RestartingAllContainers"
ON_FAILURE, NEVER = "OnFailure", "Never"
POLICIES = (ALWAYS, ON_FAILURE, NEVER)
# Action of a rule that restarts all containers of the pod, init containers included.
RESTART_ALL = "RestartAllContainers"
ACTIONS = ("Restart", RESTART_ALL)
OPERATORS = ("In", "NotIn")


class Rule(NamedTuple):
    """An entry of a container's `restartPolicyRules`: exit codes and the action after them."""

    codes: tuple[int, ...]  # Exit codes.
    within: bool  # True if the rule applies to these exit codes, False if it applies to all others.
    action: str  # `Restart` or `RestartAllContainers`.


class Restarts(msgspec.Struct, frozen=True, gc=False):
    """The restart policy and the restart rules of one container."""

    policy: str = ALWAYS  # `Always`, `OnFailure` or `Never`.
    # The rules. The first rule that applies to an exit code takes precedence over the policy.
    rules: tuple[Rule, ...] = ()

    def action(self, exit_code: int) -> str:
        """Returns the action of the first rule that applies to an exit code.

        Returns an empty string if no rule applies.
        """
        found = (rule.action for rule in self.rules if (exit_code in rule.codes) is rule.within)
        return next(found, "")

    def restarts_after(self, exit_code: int | None) -> bool:
        """Returns True if the kubelet restarts a container that has ended with this exit code.

        `exit_code` is None if the end of the container has no exit code, for example after a failed
        probe. No rule applies to such an end, and the end counts as a failure.
        """
        if exit_code is not None and self.action(exit_code) in ACTIONS:
            return True
        return self.policy == ALWAYS or (self.policy == ON_FAILURE and exit_code != 0)


def restarts_in(spec: Mapping[str, Any], container: Mapping[str, Any]) -> Restarts:
    """Returns the restart policy and the restart rules of a container in a pod.

    If the container has no policy of its own, the policy is the `restartPolicy` of `spec`, the pod
    spec.
    """
    return restarts_of(container, spec.get("restartPolicy") or ALWAYS)


def restarts_of(container: Mapping[str, Any], policy: str) -> Restarts:
    """Returns the restart policy and the restart rules of a container.

    `policy` is the restart policy of the pod, which applies if the container has no policy of its
    own.
    """
    own = container.get("restartPolicy")
    if not isinstance(own, str) or not own:
        return Restarts(policy)
    rules = container.get("restartPolicyRules")
    found = [_rule(each) for each in rules] if isinstance(rules, list) else []
    return Restarts(own, tuple(rule for rule in found if rule is not None))


def _rule(rule: Any) -> Rule | None:
    """Returns a rule of `restartPolicyRules`; None if the API server would refuse the entry.

    `rule` is the entry as JSON.
    """
    exits = rule.get("exitCodes") if isinstance(rule, dict) else None
    if not isinstance(exits, dict) or exits.get("operator") not in OPERATORS:
        return None
    values = exits.get("values")
    codes = [code for code in values if isinstance(code, int)] if isinstance(values, list) else []
    return Rule(tuple(codes), exits["operator"] == "In", str(rule.get("action")))
