"""`make same`: the working tree answers every call as an earlier commit did, byte for byte.

Goldens, examples, recorded calls, upgrade vectors, the rules' unit tests and 200 lives of the model
are played once, and every POST to their service is kept under build/same (delete that to play them
anew). All of it then goes through the commit, from `git archive`, and the working tree, each in a
process of its own; status and bytes are compared. This goes with issue 39.
"""
# ruff: noqa: PLC0415, T201 - a step imports from the tree in whose directory it runs

import io
import json
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "same"
TESTS = (
    *(f"tests/scenarios/test_{name}.py" for name in ("golden", "examples")),
    *(f"tests/contract/test_{name}.py" for name in ("recorded", "upgrade", "http", "http_errors")),
    *(f"tests/unit/{room}" for room in ("answer", "decide", "pod", "spec", "storage")),
)
BATCH, STEPS, SHOWN, AROUND = 50, 15, 10, 80
"""Lives of a seed, steps of a life; differences that are shown, and bytes around each."""


def record(lives: int) -> None:
    """Plays tests and lives of the working tree, and writes to stdout what their service gets."""
    import pytest

    from hooks import app as module

    out = os.fdopen(os.dup(1), "wb", buffering=0)  # of 1 pytest takes what comes
    create, writing = module.create_app, threading.Lock()

    def recorded(settings: Any = None, clock: Any = module.time.time, **more: Any) -> Any:
        told = [0.0]

        def telling() -> float:
            told[0] = float(clock())
            return told[0]

        app = create(settings, clock=telling, **more)
        chosen = (settings or module.Settings()).model_dump(mode="json", exclude_defaults=True)
        inner = app.wsgi_app

        def keeping(environ: dict[str, Any], start: Any) -> Any:
            size = environ.get("CONTENT_LENGTH") or ""
            if environ["REQUEST_METHOD"] != "POST" or not size.isdecimal():
                return inner(environ, start)
            body = environ["wsgi.input"].read(int(size))
            answer = inner({**environ, "wsgi.input": io.BytesIO(body)}, start)
            call = environ["PATH_INFO"], told[0], environ.get("CONTENT_TYPE"), chosen, body
            with writing:
                pickle.dump(call, out)  # without a copy: some tests measure memory
            return answer

        app.wsgi_app = keeping
        return app

    module.create_app = recorded
    os.dup2(2, 1)
    if pytest.main(["-q", "-p", "no:xdist", "-p", "no:randomly", "-p", "no:cacheprovider", *TESTS]):
        sys.exit("same: these tests fail, so not all that they ask is known")
    if not out.tell():
        sys.exit("same: nothing was recorded of these tests")
    from tests.model.__main__ import play

    for number in range(1, 1 + lives // BATCH):
        if found := play(number, BATCH, STEPS, shrink=False):
            sys.exit(f"same: a life of the model ended early: {found}")


def answer() -> None:
    """Reads calls and writes status and bytes, of the service in the working directory."""
    from hooks import app as module

    assert Path(module.__file__).is_relative_to(Path.cwd()), module.__file__
    fields, clients, now = module.Settings.model_fields, {}, [0.0]
    fixed = {name: 0 for name in fields if name.startswith("pace_")}
    fixed |= {"log_level": "ERROR", "events": False, "auth_token_file": None}
    for path, now[0], kind, settings, body in each(sys.stdin.buffer):
        if (key := json.dumps(settings)) not in clients:
            chosen = module.Settings(**{k: v for k, v in settings.items() if k in fields} | fixed)
            made = module.create_app(chosen, clock=lambda: now[0], resize=lambda _: None)
            clients[key] = made.test_client()
        got = clients[key].post(path, data=body, content_type=kind)
        pickle.dump((got.status_code, got.data), sys.stdout.buffer)


def each(source: IO[bytes]) -> Iterator[Any]:
    """What was written, one after the other."""
    while source.peek(1):  # type: ignore[attr-defined]
        yield pickle.load(source)


def step(name: str, tree: Path, calls: Path, out: Path, *more: str) -> None:
    """One of the above in a process of its own, with that tree's files."""
    part, env = out.with_suffix(".part"), {**os.environ, "PYTHONPATH": ".", "PYTHONSAFEPATH": "1"}
    command = [sys.executable, __file__, name, *more]
    with calls.open("rb") as source, part.open("wb") as target:
        subprocess.run(command, check=True, cwd=tree, env=env, stdin=source, stdout=target)
    part.rename(out)


def main(base: str, lives: str) -> int:
    """Records, plays and compares; 1 if an answer differs. Without that commit: nothing."""
    git, tree = ("git", "-C", str(ROOT)), PLACE / base
    if subprocess.call([*git, "cat-file", "-e", f"{base}^{{commit}}"], stderr=-3):
        print(f"same: skipped, as this clone has no commit {base}")
        return 0
    calls, before, now = (PLACE / f"{name}-{base}-{lives}" for name in ("calls", "before", "now"))
    if not before.exists():
        tree.mkdir(parents=True, exist_ok=True)
        packed = subprocess.run([*git, "archive", base], check=True, stdout=-1).stdout
        subprocess.run(["tar", "-x", "-C", tree], input=packed, check=True)
        step("record", ROOT, Path(os.devnull), calls, lives)
        step("answer", tree, calls, before)
    step("answer", ROOT, calls, now)
    played: Counter[str] = Counter()
    lines = (each(file.open("rb")) for file in (calls, before, now))
    for (path, *asked, body), old, new in zip(*lines, strict=True):
        played[f"{path} {old[0]}"] += 1
        if old == new:
            continue
        played["different"] += 1
        if (number := played["different"]) <= SHOWN:
            (PLACE / f"{number}.json").write_bytes(body)
            print(f"{path} {asked}, asked build/same/{number}.json")
            pairs = enumerate(zip(old[1], new[1], strict=False))
            at = max(0, next((i for i, (a, b) in pairs if a != b), 0) - AROUND)
            for name, (status, text) in (("before", old), ("now", new)):
                print(f"  {name:6} {status} ...{text[at : at + 2 * AROUND].decode()!r}")
    print("same:", dict(sorted(played.items())))
    return 1 if played["different"] else 0


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["record", lives]:
            record(int(lives))
        case ["answer"]:
            answer()
        case [base, lives]:
            sys.exit(main(base, lives))
