"""Tests the GitHub workflows for pull requests and tags, and the automatic updates of versions."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

Document = dict[str, Any]
ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yaml"))
WORKFLOWS: dict[str, Document] = {file.stem: yaml.safe_load(file.read_text()) for file in FILES}
ACTIONLINT = r"github\.com/rhysd/actionlint/cmd/actionlint@(v\S+)"

workflows = pytest.mark.parametrize("file", FILES, ids=[file.stem for file in FILES])


def script(job: Document) -> str:
    """Returns all shell commands of a job as one text."""
    return "\n".join(step["run"] for step in job["steps"] if "run" in step)


@workflows
def test_actionlint_finds_nothing(file: Path) -> None:
    if shutil.which("actionlint") is None:
        pytest.skip("there is no actionlint: `go install`, as .ci/run does, builds one")
    done = subprocess.run(["actionlint", file], text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@workflows
def test_actions_are_pinned_to_a_commit(file: Path) -> None:
    """Each action is pinned to the hash of a commit, with its version in a comment.

    All workflows use the same version of an action.
    """
    used = re.findall(r"uses: (.+)", file.read_text())
    assert used
    for each in used:
        assert re.fullmatch(r"(actions|sigstore)/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)
    everywhere = set(re.findall(r"uses: (.+)", "".join(each.read_text() for each in FILES)))
    assert len(everywhere) == len({each.partition("@")[0] for each in everywhere})


@workflows
def test_each_job_has_the_least_rights(file: Path) -> None:
    """Only the release may write, checkouts keep no credentials, and each job has a timeout."""
    whole = WORKFLOWS[file.stem]
    assert whole["permissions"] == {"contents": "read"}
    own = {name: job["permissions"] for name, job in whole["jobs"].items() if "permissions" in job}
    writes = dict.fromkeys(("attestations", "contents", "id-token", "packages"), "write")
    assert own == ({"release": writes} if file.stem == "release" else {})
    for job in whole["jobs"].values():
        assert job["steps"][0]["with"] == {"persist-credentials": False}
        assert "timeout-minutes" in job


@workflows
def test_scripts_contain_no_values_from_outside(file: Path) -> None:
    assert not any("${{" in script(job) for job in WORKFLOWS[file.stem]["jobs"].values())


class TestRelease:
    WHOLE = WORKFLOWS["release"]
    JOB: Document = WHOLE["jobs"]["release"]

    def test_release_runs_for_tags_after_the_tests(self) -> None:
        assert self.WHOLE[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
        assert self.JOB["needs"] == ["test", "plugin"]
        assert self.WHOLE["jobs"]["plugin"]["needs"] == "test"
        assert script(self.WHOLE["jobs"]["test"]) == "make lint test"

    def test_release_signs_the_published_image_by_its_digest(self) -> None:
        steps = [
            "docker buildx build", 'cosign sign --yes "$PLACE/tapp-hooks@$digest"', "make release",
            "helm push", 'cosign sign --yes "$PLACE/charts/tapp@$(', "cosign sign-blob",
            "gh release",
        ]  # fmt: skip
        done = script(self.JOB)
        assert sorted(steps, key=done.index) == steps
        assert "IMAGE=$PLACE/tapp-hooks@$digest" in done
        assert "dist/tapp-$VERSION.tgz" in done

    def test_release_has_the_plugin_for_every_platform(self) -> None:
        """The plugin is built on two Linux and two macOS runners, and `make release` gets their
        archives.
        """
        job = self.WHOLE["jobs"]["plugin"]
        assert script(job) == "make plugin"
        runners = job["strategy"]["matrix"]["runner"]
        assert [each.startswith("ubuntu") for each in runners].count(True) == 2
        assert [each.startswith("macos") for each in runners].count(True) == 2
        assert job["steps"][-1]["with"]["path"] == "dist/*.tar.gz"
        (brought,) = [each for each in self.JOB["steps"] if "download-artifact" in str(each)]
        assert f"ARCHIVES={brought['with']['path']}" in script(self.JOB)
        assert 'PAGE="$PAGE"' in script(self.JOB)

    def test_all_files_in_the_checksums_have_provenance(self) -> None:
        (attested,) = [each for each in self.JOB["steps"] if "actions/attest@" in str(each)]
        assert attested["with"] == {"subject-checksums": "dist/SHA256SUMS"}
        assert attested is self.JOB["steps"][-2]


class TestPullRequest:
    JOBS: Document = WORKFLOWS["ci"]["jobs"]

    def test_pull_request_is_tested_on_kind_and_built_for_both_architectures(self) -> None:
        assert "pull_request" in WORKFLOWS["ci"][True]
        assert "make lint test" in script(self.JOBS["test"])
        assert script(self.JOBS["e2e"]) == "make e2e"
        (step,) = [each for each in self.JOBS["e2e"]["steps"] if "run" in each]
        assert step["env"] == {"E2E_KIND": "1", "E2E_REQUIRED": "1"}
        assert "--platform linux/amd64,linux/arm64 " in script(self.JOBS["image"])
        assert "push" not in script(self.JOBS["image"])

    def test_pull_request_is_tested_with_every_python_of_the_wheel(self) -> None:
        """The tests run with each Python version of the wheel; if one fails, the others run all the
        same.
        """
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        named = [each.rpartition(" ")[2] for each in project["classifiers"]]
        strategy = self.JOBS["test"]["strategy"]
        assert strategy == {"fail-fast": False, "matrix": {"python": named}}
        assert f">={named[0]}" == project["requires-python"]
        (setup,) = [each for each in self.JOBS["test"]["steps"] if "setup-python" in str(each)]
        assert setup["with"] == {"python-version": "${{ matrix.python }}"}

    def test_pull_request_tries_the_hints_of_make_kind(self) -> None:
        done = script(self.JOBS["kind"])
        tried = re.findall(r"(?m)^(kubectl tapp .*?)(?: --yes)?$", done)
        assert len(tried) == 3
        assert [
            each
            for each in tried
            if f"  {each} " not in (ROOT / "release" / "kind.sh").read_text().replace("\n", " \n")
        ] == []
        assert done.count("make kind\n") == 2
        assert done.endswith("make kind-down")

    def test_pull_request_uses_the_same_actionlint_as_the_repository(self) -> None:
        (here,) = re.findall(ACTIONLINT, script(self.JOBS["test"]))
        assert re.findall(ACTIONLINT, (ROOT / ".ci" / "run").read_text()) == [here]


def test_all_pinned_versions_are_updated_automatically() -> None:
    """Dependabot updates the requirements, the base image and the actions.

    Its updates of requirements use uv, which writes requirements*.txt.
    """
    found = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())["updates"]
    assert {each["package-ecosystem"] for each in found} == {"uv", "docker", "github-actions"}
    assert {each["directory"] for each in found} == {"/"}
