"""Runs short versions of `python -m tests.load` against the real service on the loopback."""

import pytest

from tests.load.faults import dawdlers, drain, too_large
from tests.load.neighbors import beside, worst
from tests.load.storm import rolls, storm
from tests.sizes import FULL, size

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("load")]


def test_killed_workers_and_service_replacements_cause_no_wrong_response() -> None:
    figures = storm(size(4, 16), size(3, 6), every=1 if FULL else 0.5)
    assert figures["rolls"] >= 1
    assert not figures["wrong"], figures["examples"]
    assert figures["lost"] == 0
    assert figures["answers"] > 50
    assert set(figures["exit codes"]) == {0}


def test_service_replacement_breaks_no_request() -> None:
    figures = rolls(size(3, 8), 1, pause=1 if FULL else 0.4)
    assert figures["broken and sent again"] == {}
    assert figures["wrong"] == 0, figures
    assert figures["lost"] == 0, figures


def test_sigterm_lets_requests_in_progress_finish() -> None:
    figures = drain(pods=500)
    assert figures["whole answers"] == figures["sent"]
    assert figures["exit code"] == 0


def test_slow_clients_block_neither_probes_nor_syncs() -> None:
    """Opens 300 slow connections: half of them stop within the headers, half within the body.

    Probes and syncs of other clients succeed.
    """
    figures = dawdlers(300, 24, size(2, 4))
    assert figures["failed"] == 0, figures
    assert figures["syncs failed"] == 0, figures


def test_body_above_the_limit_is_refused_and_leaves_no_memory_allocated() -> None:
    figures = too_large(limit=32 * 1024 * 1024, times=3)
    assert figures["codes"] == {"400": 3, "413": 3}
    assert figures["healthz"] == 200
    # The allocator keeps a bounded part of the bodies that were read, and nothing of refused
    # bodies.
    assert figures["MB after 413"] - figures["MB before"] < 20, figures
    assert figures["MB after 400"] - figures["MB before"] < 256, figures


def test_slow_tapp_of_one_tenant_blocks_no_other_tenant() -> None:
    """Eight clients of one tenant send a TApp that takes long: all syncs of another tenant succeed.

    Without a limit, such clients left another tenant without a response for half a minute.
    """
    figures = beside(worst(), size(2, 40))
    assert figures["asked"] >= 8
    assert figures["failed"] == 0, figures
    assert figures["syncs failed"] == 0, figures
