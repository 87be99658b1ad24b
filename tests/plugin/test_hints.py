"""Tests that commands in messages can be pasted: they are complete, and for the right namespace and
cluster.
"""

import re
import shlex

import pytest

from kubectl_tapp.base import hints
from tests.plugin.fake_kubectl import StandIn, kubectl_tapp
from tests.plugin.states import web
from tests.scenarios.life import Life

GIVEN = ("--context=my cluster", "--kubeconfig=/k", "--as=jane", "--as-group=a", "--token=secret",
         "--request-timeout=5s", "--password=p")  # fmt: skip


@pytest.fixture
def shop() -> StandIn:
    """Returns a fake kubectl for a TApp in the namespace `shop`, which is not the current one."""
    manifest = web()
    manifest["metadata"]["namespace"] = "shop"
    life = Life()
    life.world.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    life.world.apply(manifest)
    life.world.settle()
    return StandIn(life.world)


def test_command_in_a_message_has_the_options_of_the_user_without_secrets() -> None:
    hints.remember_options(
        {"context": "my cluster", "token": "secret", "insecure_skip_tls_verify": True}
    )
    options = "'--context=my cluster' --insecure-skip-tls-verify=true"
    named = f"`kubectl tapp why web -n shop {options}`"
    assert hints.shell_command("why", "web", namespace="shop") == named
    hints.remember_options({})
    assert hints.shell_command("list", "-A") == "`kubectl tapp list -A`"
    named = hints.shell_command("describe", "tapp", "web", namespace="shop", plugin=False)
    assert named == "`kubectl describe tapp web -n shop`"


LINES = ["why web", "set image web web=x --canary 1", "use web trial 1"]


@pytest.mark.parametrize("line", LINES)
def test_commands_in_messages_are_complete(shop: StandIn, line: str) -> None:
    kubectl_tapp(shop, "hold", "web", "1", "--reason", "x", "-y", "-n", "shop")
    kubectl_tapp(shop, *["set", "image", "web", "web=x", "--canary", "2,", "-y", "-n", "shop"])
    said = kubectl_tapp(shop, *line.split(), "-n", "shop", *GIVEN)
    for command in re.findall(r"`(kubectl[^`]*)`", said.out + said.err):
        words = shlex.split(command)
        assert words[:2] == ["kubectl", "tapp"], command
        assert "--context=my cluster" in words
        assert "--kubeconfig=/k" in words
        assert "--as=jane" in words
        assert not {"--token=secret", "--password=p", "--request-timeout=5s"} & {*words}
        assert "-A" in words or ("-n" in words and words[words.index("-n") + 1] == "shop")
    assert "`kubectl tapp " in said.out + said.err
