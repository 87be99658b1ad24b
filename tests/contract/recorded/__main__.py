"""Records requests and responses of this release: `python -m tests.contract.recorded`."""

import json
import os
import sys
from pathlib import Path

from hooks.version import VERSION
from tests.contract.recorded.stories import STORIES
from tests.scenarios.life import Document, Life

HERE = Path(__file__).parent


def record(life: Life, about: str) -> Document:
    """Runs one more sync of a TApp and returns its request, time and response.

    `about` is the description that is stored with them.
    """
    life.world.metacontroller.queue.add(("default", life.name))
    before = life.world.hook_calls[-1]
    life.until(lambda: life.world.hook_calls[-1] is not before and _is_sync(life))
    call = life.world.hook_calls[-1]
    now = life.world.clock.unix() - life.world.clock.now + call.time
    return {"about": about, "now": now, "request": scrubbed(call.request), "answer": call.response}


def _is_sync(life: Life) -> bool:
    return life.world.hook_calls[-1].hook == "sync"


def scrubbed(request: Document) -> Document:
    """Returns the request without parts that no decision reads: the controller's spec and kubectl's
    annotation.
    """
    meta = request["controller"]["metadata"]
    annotations = request["parent"]["metadata"].get("annotations") or {}
    annotations.pop("kubectl.kubernetes.io/last-applied-configuration", None)
    return {**request, "controller": {**request["controller"], "metadata": meta, "spec": {}}}


def main() -> int:
    if os.environ.get("CI"):
        sys.stderr.write("refused when CI is set: nobody reads a difference that CI makes\n")
        return 1
    directory = HERE / VERSION
    directory.mkdir(exist_ok=True)
    for story in STORIES:
        text = json.dumps(record(story(), (story.__doc__ or "").strip()), indent=1, sort_keys=True)
        (directory / f"{story.__name__}.json").write_text(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
