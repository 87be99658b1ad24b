"""Tests the plugin as a process with unusable standard streams, directories, or kubectl.

Each problem is one sentence on standard error and an exit code, and never "a fault of
kubectl-tapp".
"""

import shlex
import subprocess
from pathlib import Path

import pytest

from kubectl_tapp.cluster import kuberc
from migration.kubectl import run
from tests.plugin.processes import ROOT, command, environment_of

FULL = "standard output cannot be written: No space left on device"
CLOSED = "standard output cannot be written: Bad file descriptor"
COMPLETE = "from kubectl_tapp.entry import complete; complete()"


def shell(place: Path, line: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Runs a line in a shell, in which PLUGIN stands for the plugin and COMPLETE for its completion
    program.

    `place` has the script that replaces kubectl, and `variables` are environment variables.
    """
    plugin, complete = command(), command()
    complete[-1] = COMPLETE
    line = line.replace("PLUGIN", shlex.join(plugin)).replace("COMPLETE", shlex.join(complete))
    return subprocess.run(
        ["bash", "-c", line], cwd=ROOT, env=environment_of(place, **variables), capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip


OUTPUTS = {
    "text, full": ("PLUGIN status web >/dev/full", 1, f"error: {FULL}\n"),
    "text, closed": ("PLUGIN status web >&-", 1, f"error: {CLOSED}\n"),
    "json, full": ("PLUGIN status web -o json >/dev/full", 1, f"error: {FULL}\n"),
    "json, closed": ("PLUGIN why web -o json >&-", 1, f"error: {CLOSED}\n"),
    "names, full": ("PLUGIN list -o name >/dev/full", 0, ""),  # no output
    "version, full": ("PLUGIN --version >/dev/full", 1, f"error: {FULL}\n"),
    "all help, full": ("PLUGIN --help >/dev/full", 1, f"error: {FULL}\n"),
    "help, full": ("PLUGIN status --help >/dev/full", 1, f"error: {FULL}\n"),
    "a dry run, full": ("PLUGIN pause web --dry-run=client >/dev/full", 1, f"error: {FULL}\n"),
    "a page, full": (
        "PLUGIN plan web --replicas 2 --html /dev/full", 1,
        "error: /dev/full cannot be written: No space left on device\n",
    ),
    "a write, full": ("PLUGIN pause web -y >/dev/full", 0, f"note: {FULL}; the command goes on\n"),
    "a write, closed": ("PLUGIN pause web -y >&-", 0, f"note: {CLOSED}; the command goes on\n"),
    "nobody to ask": (
        "PLUGIN pause web <&- >/dev/null", 2,
        "error: the command cannot ask for confirmation without a terminal; nothing was written. "
        "Repeat it with -y\n",
    ),
    "no input": (
        "PLUGIN plan -f - <&-", 1, "error: standard input has no TApp: there is nothing\n",
    ),
    "completion, full": ("COMPLETE --version '' >/dev/full", 1, f"error: {FULL}\n"),
    "the page, full": ("PLUGIN web --no-browser >/dev/full", 1, f"error: {FULL}\n"),
    "the page, closed": ("PLUGIN web --no-browser >&-", 1, f"error: {CLOSED}\n"),
    "everything full": ("PLUGIN pause web -y >/dev/full 2>/dev/full", 0, ""),
    "an error nobody can read": ("PLUGIN status web --wach 2>/dev/full", 2, ""),
    "everything closed": ("PLUGIN status web <&- >&- 2>&-", 1, ""),
    "a reader that has enough": ("PLUGIN status web | head -c 1 >/dev/null; true", 0, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTPUTS)
def test_unwritable_stream_is_one_error(place: Path, case: str) -> None:
    line, code, said = OUTPUTS[case]
    done = shell(place, line)
    assert done.stderr == said
    assert done.returncode == code


PLACES = {
    "no temporary directory": ("PLUGIN pause web -y", {"TMPDIR": "/nonexistent"}),
    "a directory that is gone": ("mkdir {tmp}/d; cd {tmp}/d; rmdir {tmp}/d; PLUGIN status web", {}),
    "no home": ("unset HOME; PLUGIN status web", {}),
}


@pytest.mark.parametrize("case", PLACES)
def test_plugin_works_without_the_directory(place: Path, tmp_path: Path, case: str) -> None:
    line, variables = PLACES[case]
    done = shell(place, line.format(tmp=tmp_path), PYTHONPATH=str(ROOT), **variables)
    assert done.stderr == ""
    assert done.returncode == 0
    assert "web" in done.stdout


def test_large_patch_needs_no_temporary_file(place: Path, tmp_path: Path) -> None:
    """Sends 300 KB to kubectl without any temporary file.

    Many containers cannot write to temporary directories and the working directory.
    """
    code = (
        "import tempfile; tempfile.gettempdir = None\n"
        "from kubectl_tapp.cluster.kubectl import Program\n"
        "print(len(Program().run(['patch'], 'x' * 300_000).out))\n"
    )
    script = tmp_path / "kubectl"
    script.write_text("#!/bin/sh\ncat\n")
    script.chmod(0o755)
    done = subprocess.run(
        [*command()[:2], code], cwd=ROOT, env=environment_of(place, KUBECTL=str(script)),
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stdout == "300000\n"
    assert done.stderr == ""


KUBECTLS = {
    "not executable": ("", 0o644, "kubectl cannot be run (Permission denied): see PATH"),
    "no program": ("", 0o755, "kubectl cannot be run (Exec format error): see PATH"),
    "no interpreter": ("#!/nowhere/sh\n", 0o755, "kubectl cannot be run (No such file or"),
    "killed": (
        "#!/bin/sh\nkill -9 $$\n", 0o755, "kubectl was killed by signal 9 without a message",
    ),
    "an unreadable kubeconfig": (
        "#!/bin/sh\necho 'error: error loading config file \"/c\": denied' >&2; exit 1\n",
        0o755, 'kubectl: error loading config file "/c": denied',
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", KUBECTLS)
def test_broken_kubectl_is_one_error(place: Path, tmp_path: Path, case: str) -> None:
    text, mode, sentence = KUBECTLS[case]
    script = tmp_path / "my-kubectl"
    script.write_text(text)
    script.chmod(mode)
    for line in ("list", "status web", "kill web 1 -y"):
        done = shell(place, f"PLUGIN {line}", KUBECTL=str(script))
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr.startswith(f"error: {sentence}")
        assert done.stderr.count("\n") == 1


def test_plugin_works_for_a_user_without_a_home_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin works if HOME is not set and the user ID is unknown.

    A container may run with a user ID that /etc/passwd does not have.
    """
    for name in ("HOME", "KUBERC", "KUBECTL_KUBERC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda uid: {}[uid])
    assert kuberc.kuberc_path(None) == Path("~/.kube/kuberc")
    assert run(["true"]).code == 0
