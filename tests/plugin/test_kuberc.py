"""Tests that calls of the plugin ignore the user's preferences for kubectl (kuberc).

Two preferences count: the policy for credential plugins, and those of `kubectl apply` for plans.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kubectl_tapp.cluster.kubectl import Program
from migration.kubectl import run
from tests.builders import manifest
from tests.plugin.applied_tapps import CLIENT, SERVER, by_client, by_server
from tests.plugin.fake_kubectl import kubectl_tapp
from tests.plugin.processes import ROOT, command, environment_of

POLICY = {
    "credentialPluginPolicy": "Allowlist", "credentialPluginAllowlist": [{"command": "kubelogin"}]
}  # fmt: skip
PROGRAM = f"""#!{sys.executable}
import json, os, sys
path = os.environ["KUBERC"]
file = json.load(open(path)) if os.path.exists(path) else None
print(json.dumps([path, file, sys.argv[1:]]))
"""


@pytest.fixture
def kuberc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the path of the user's kuberc, and installs a kubectl that prints its preferences and
    arguments.
    """
    (tmp_path / "kubectl").write_text(PROGRAM)
    (tmp_path / "kubectl").chmod(0o755)
    monkeypatch.setenv("KUBECTL", str(tmp_path / "kubectl"))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBERC")
    (tmp_path / ".kube").mkdir()
    return tmp_path / ".kube" / "kuberc"


def preferences(command: str, version: str = "v1beta1", **options: str) -> str:
    """Returns the text of a kuberc that sets these options of a kubectl command.

    `version` is the version of the kuberc's API.
    """
    listed = [{"name": name.replace("_", "-"), "default": each} for name, each in options.items()]
    defaults, flags = ("overrides", "flags") if version == "v1alpha1" else ("defaults", "options")
    document = {
        "apiVersion": f"kubectl.config.k8s.io/{version}", "kind": "Preference",
        defaults: [{"command": command, flags: listed}],
    }  # fmt: skip
    return json.dumps(document)


@pytest.mark.parametrize("way", ["default", "KUBERC", "--kuberc"])
@pytest.mark.parametrize("kept", [None, POLICY], ids=["options", "a policy, too"])
def test_calls_ignore_preferences_except_the_policy_for_credential_plugins(
    kuberc: Path, monkeypatch: pytest.MonkeyPatch, way: str, kept: dict[str, object] | None
) -> None:
    """Runs a call and a watch with a kuberc from the default path, a variable, or an option.

    kubectl gets no preferences, or only the policy for credential plugins if the kuberc has one.
    """
    text = {**json.loads(preferences("get", show_labels="true")), **(kept or {})}
    arguments = ["get", "pods"]
    place = kuberc if way == "default" else kuberc.with_name(f"{way.strip('-')}-{bool(kept)}")
    place.write_text(json.dumps(text))
    if way == "KUBERC":
        monkeypatch.setenv("KUBERC", str(place))
    if way == "--kuberc":
        arguments.insert(0, f"--kuberc={place}")
    followed = Program().follow(arguments)
    outs = [Program().run(arguments).out, *followed.lines()]
    followed.stop()
    followed.done()
    for out in outs:
        path, file, words = json.loads(out)
        assert words == ["get", "pods"]
        if kept is None:
            assert path == "off"
        else:
            assert file == {"apiVersion": text["apiVersion"], "kind": "Preference", **POLICY}


@pytest.mark.parametrize("text", ["", "a: [", "{}", "[]", "kind: Preference\napiVersion: v1"])
def test_invalid_kuberc_changes_nothing(kuberc: Path, text: str) -> None:
    kuberc.write_text(text)
    assert json.loads(Program().run(["get"]).out)[0] == "off"


def test_policy_file_is_written_again_if_it_was_deleted(
    kuberc: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deletes the temporary file with the policy between two calls; the second call writes it
    again.

    Systemd deletes old files in /tmp, and the page may be served for weeks.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    policy = {**POLICY, "credentialPluginAllowlist": [{"command": "lost-and-found"}]}
    kuberc.write_text(json.dumps({**json.loads(preferences("get", wide="true")), **policy}))
    first = json.loads(Program().run(["get"]).out)
    shutil.rmtree(Path(first[0]).parent)
    second = json.loads(Program().run(["get"]).out)
    assert first[1] == second[1]
    assert first[0] != second[0]


def test_call_does_not_run_without_the_policy(
    kuberc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call fails if the temporary file with the policy cannot be written.

    Otherwise kubectl would have all preferences of the user or no policy.
    """
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    policy = {**POLICY, "credentialPluginAllowlist": [{"command": "nowhere"}]}
    kuberc.write_text(json.dumps({**json.loads(preferences("get", wide="true")), **policy}))
    with pytest.raises(OSError, match="/nonexistent"):
        Program().run(["get"])


ENDS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


@pytest.mark.parametrize("name", ENDS)
def test_temporary_files_are_deleted_when_a_signal_ends_the_command(
    place: Path, tmp_path: Path, name: str
) -> None:
    """Sends a signal during a call: the exit code is that of the signal, and no temporary file is
    left.

    SIGHUP comes when the user closes the terminal, SIGTERM when a container stops.
    """
    policy = json.loads(preferences("get", show_labels="true")) | POLICY
    (tmp_path / "kuberc").write_text(json.dumps(policy))
    (tmp_path / "tmp").mkdir()
    (place / "asked").unlink(missing_ok=True)
    files = {"KUBERC": str(tmp_path / "kuberc"), "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(
        command("status", "slow"), cwd=ROOT, env=environment_of(place, **files)
    ) as one:
        end = time.monotonic() + 60
        while not (place / "asked").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert len([*(tmp_path / "tmp").iterdir()]) == 1
        one.send_signal(getattr(signal, name))
        assert one.wait(60) == ENDS[name]
    assert [*(tmp_path / "tmp").iterdir()] == []


def test_migration_ignores_preferences_except_the_policy(kuberc: Path) -> None:
    kuberc.write_text(preferences("get", show_labels="true"))
    assert json.loads(run(["kubectl", "get"]).out)[0] == "off"
    kuberc.write_text(json.dumps(POLICY))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("KUBERC", str(kuberc))
        assert json.loads(run(["kubectl", "get"]).out)[0] == str(kuberc)


CASES: dict[str, tuple[str, list[str], str, bool]] = {
    "server-side": (preferences("apply", server_side="true"), [], SERVER, True),
    "server-side, as v1alpha1 has it": (
        preferences("apply", "v1alpha1", server_side="1"), [], SERVER, True),
    "client-side": (preferences("apply", server_side="false"), [], CLIENT, False),
    "of another command": (preferences("create", server_side="true"), [], CLIENT, False),
    "overruled": (
        preferences("apply", server_side="true"), ["--no-server-side"], CLIENT, False),
    "a field manager": (
        preferences("apply", server_side="true", field_manager="me"), [],
        SERVER.removesuffix("kubectl") + "me", True),
    "a field manager alone": (preferences("apply", field_manager="me"), [], CLIENT, False),
}  # fmt: skip
"""Name -> the kuberc, options of the plan, what the plan says, and if the server applies."""


@pytest.mark.parametrize("case", CASES)
def test_plan_follows_the_preferences_of_apply(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    """`plan -f` plans a client-side or server-side apply as the user's kuberc says for `kubectl
    apply`.

    The user's own `kubectl apply -f` will follow the same preferences.
    """
    text, options, said, by_the_server = CASES[case]
    place = tmp_path / "kuberc"
    place.write_text(text)
    monkeypatch.setenv("KUBERC", str(place))
    web, file = by_client(manifest(replicas=3)), tmp_path / "web.json"
    file.write_text(json.dumps(manifest(replicas=3)))
    found = kubectl_tapp(web, "plan", "-f", str(file), *options)
    assert found.code == 0, found.err
    assert said in found.out
    followed = "server-side" in text and '"apply"' in text and not options
    assert (f"because {place} sets" in found.out) is followed
    assert any("--server-side" in call for call in web.calls) is by_the_server


def test_plan_names_the_preferences_that_it_ignores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kuberc"
    options = {
        "server_side": "true",
        "force_conflicts": "true",
        "namespace": "prod",
        "output": "yaml",
    }
    place.write_text(preferences("apply", **options))
    monkeypatch.setenv("KUBERC", str(place))
    web, file = by_server(manifest(replicas=3)), tmp_path / "web.json"
    file.write_text(json.dumps(manifest(replicas=3)))
    found = kubectl_tapp(web, "plan", "-f", str(file))
    assert "your kuberc adds --namespace=prod to `kubectl apply`, which this plan" in found.out
    assert any("--force-conflicts" in call for call in web.calls)
