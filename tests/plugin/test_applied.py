"""Tests `plan -f`: it recognizes whether `kubectl apply` is client-side or server-side, and plans
the result.
"""

import json
from pathlib import Path

import pytest

from kubectl_tapp.cluster.kubectl import CallResult, error_of
from tests.builders import claim_template, manifest
from tests.plugin.applied_tapps import CLIENT, SERVER, by_client, by_server
from tests.plugin.fake_kubectl import Document, Said, StandIn, kubectl_tapp

STOPPED = manifest(replicas=3, statuses={"1": "Killed"})


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "web.json"


def plan(standin: StandIn, place: Path, document: Document, *options: str) -> Said:
    """Writes a document to the file `place` and returns the output of `plan -f` for this file."""
    place.write_text(json.dumps(document), encoding="utf-8")
    return kubectl_tapp(standin, "plan", "-f", str(place), *options)


def test_plan_removes_applied_fields_that_are_missing_in_the_file(place: Path) -> None:
    """Plans a file without `statuses` for a TApp whose last apply had set this field.

    Otherwise the plan would show no change, but apply would start the killed instance.
    """
    for standin, said in ((by_server(STOPPED), SERVER), (by_client(STOPPED), CLIENT)):
        found = plan(standin, place, manifest(replicas=3))
        assert found.code == 0, found.err
        assert "1 created" in found.out
        assert said in found.out
        assert not standin.writes


@pytest.mark.parametrize(
    ("option", "said", "happens"),
    [("--no-server-side", CLIENT, "nothing changes"), ("--server-side", SERVER, "1 created")],
    ids=["client-side", "server-side"],
)
def test_options_override_the_recognized_kind_of_apply(
    place: Path, option: str, said: str, happens: str
) -> None:
    """Plans a client-side or a server-side apply by option, for a TApp from a server-side apply.

    A client-side apply keeps fields that it has not set, so the killed instance stays killed.
    """
    found = plan(by_server(STOPPED), place, manifest(replicas=3), option)
    assert found.code == 0
    assert happens in found.out
    assert f"{said}\n" in found.out


def test_first_server_side_apply_takes_over_the_fields_of_the_client(place: Path) -> None:
    """Plans a server-side apply for a TApp from a client-side apply: the missing field is removed.

    The dry run of the API server does not show this.
    """
    found = plan(by_client(STOPPED), place, manifest(replicas=3), "--server-side")
    assert found.code == 0
    assert "1 created" in found.out
    assert SERVER in found.out


def test_field_manager_of_the_last_apply_is_used(place: Path) -> None:
    standin = by_server(STOPPED, "kustomize-controller")
    found = plan(standin, place, manifest(replicas=3))
    assert "1 created" in found.out
    assert (
        "field manager kustomize-controller, because this TApp was last applied that way"
        in found.out
    )
    assert "--field-manager=kustomize-controller" in standin.calls[-1] or any(
        "--field-manager=kustomize-controller" in call for call in standin.calls
    )


def test_conflicts_are_printed_like_those_of_kubectl(place: Path) -> None:
    standin = by_server(STOPPED)
    standin.failing["apply"] = (
        'error: Apply failed with 1 conflict: conflict with "kubectl-tapp" using '
        "apps.tkestack.io/v1: .spec.replicas\nPlease review the fields above--they currently have "
        "other managers. Here\nare the ways you can resolve this warning:\n* If you intend"
    )
    found = plan(standin, place, manifest(replicas=5))
    assert found.code == 1
    assert (
        '  Apply failed with 1 conflict: conflict with "kubectl-tapp" using apps.tkestack.io/v1: '
        ".spec.replicas; --force-conflicts takes over the fields"
    ) in found.lines
    assert SERVER in found.out
    standin.failing.clear()
    found = plan(standin, place, manifest(replicas=5), "--server-side", "--force-conflicts")
    assert found.code == 0
    assert any("--force-conflicts" in call for call in standin.calls)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--no-server-side", "--force-conflicts"], "--force-conflicts needs --server-side"),
        (["--no-dry-run"], "only the API server knows the result of a server-side apply"),
    ],
    ids=["conflicts without server-side", "no dry run"],
)
def test_impossible_options_are_refused(place: Path, options: list[str], message: str) -> None:
    found = plan(by_server(STOPPED), place, manifest(replicas=3), *options)
    assert found.code == 2
    assert found.out == ""
    assert message in found.err


def test_server_side_without_a_file_is_refused() -> None:
    found = kubectl_tapp(by_client(STOPPED), "plan", "web", "--replicas", "3", "--server-side")
    assert found.code == 2
    assert "--server-side and --force-conflicts need -f" in found.err


def test_plan_without_permission_to_write_says_what_is_not_checked(place: Path) -> None:
    standin = by_server(STOPPED)
    standin.forbid("update tapps")
    found = plan(standin, place, manifest(replicas=3))
    assert found.code == 1
    assert 'User "jane" cannot update' in found.err
    assert "--no-server-side plans for a client-side apply" in found.err


def test_stale_resource_version_is_one_error(place: Path) -> None:
    standin = by_client(STOPPED)
    stale = {**STOPPED, "metadata": {**STOPPED["metadata"], "resourceVersion": "1"}}
    found = plan(standin, place, stale)
    assert found.code == 1
    assert "{" not in found.out, "no page of JSON"
    assert "Resource:" not in found.out
    assert "remove metadata.resourceVersion from the file" in found.out


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            'Error from server (Conflict): error when applying patch:\n{"spec":{\n}}\nto:\n'
            'Resource: "tapps"\nName: "web", Namespace: "x"\nfor: "STDIN": Operation cannot be '
            'fulfilled on tapps "web": modified\n',
            'Operation cannot be fulfilled on tapps "web": modified',
        ),
        (
            'Error from server (Forbidden): error when applying patch:\n{}\nto:\nResource: "tapps"'
            '\nfor: "STDIN": error when patching "STDIN": admission webhook "a" denied it\n',
            'admission webhook "a" denied it',
        ),
        ('Error from server (Invalid): error when creating "STDIN": it is bad\n', "it is bad"),
    ],
)
def test_error_of_kubectl_apply_is_printed_without_its_patch(said: str, expected: str) -> None:
    assert str(error_of(CallResult(1, "", said))) == expected


CLAIM = claim_template
CLAIMS = {
    "one more": (
        [CLAIM()],
        [CLAIM(), CLAIM("logs")],
        "claim template 'logs' is new: the volumes of",
    ),
    "smaller": ([CLAIM(storage="2Gi")], [CLAIM(storage="1024Mi")], "claims cannot shrink"),
    "one less": (
        [CLAIM(), CLAIM("logs")],
        [CLAIM()],
        "claim template 'logs' is removed: its claims",
    ),
    "the same, spelled otherwise": ([CLAIM(storage="1Gi")], [CLAIM(storage="1024Mi")], ""),
}


@pytest.mark.parametrize("case", CLAIMS)
def test_plan_explains_changed_claim_templates_without_effect(place: Path, case: str) -> None:
    before, after, message = CLAIMS[case]
    standin = by_client(manifest(replicas=2, volumeClaimTemplates=before))
    found = plan(standin, place, manifest(replicas=2, volumeClaimTemplates=after))
    assert "no instance changes" in found.out
    assert message in found.out
    assert ("claim template" in found.out) is bool(message)


def test_changed_access_mode_affects_only_new_claims(place: Path) -> None:
    other = claim_template()
    other["spec"]["accessModes"] = ["ReadWriteMany"]
    standin = by_client(manifest(replicas=2, volumeClaimTemplates=[claim_template()]))
    found = plan(standin, place, manifest(replicas=2, volumeClaimTemplates=[other]), "-o", "json")
    assert json.loads(found.out)["remarks"][1] == (
        "claim template 'data' changes accessModes: existing claims stay as they are, and new "
        "claims get the change"
    )
