"""Play manifests against a hook and print what happens.

    python -m simulator app-v1.yaml app-v2.yaml --controller composite-controller.yaml \
        --wsgi hooks.app:create_app

Each file is applied in turn, and the next one when nothing changes any more.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from simulator.api.store import ApiError
from simulator.metacontroller.hook_client import HookClient, HttpHook, Wsgi, WsgiHook
from simulator.objects.clock import Clock
from simulator.objects.objects import Object, name_of, namespace_of
from simulator.timeline import Timeline
from simulator.world import UnsettledError, World


def load_application(target: str, clock: Clock) -> Wsgi:
    """Load `module:attribute`; a factory is called, with the simulated clock if it takes one."""
    module, _, attribute = target.partition(":")
    found = getattr(importlib.import_module(module), attribute.removesuffix("()") or "app")
    if not inspect.isfunction(found) and not inspect.isclass(found):
        return cast(Wsgi, found)
    parameters = inspect.signature(found).parameters
    required = [p for p in parameters.values() if p.default is p.empty]
    if len(required) == 2:  # noqa: PLR2004 - environ and start_response
        return cast(Wsgi, found)
    options: dict[str, Any] = {"clock": clock.unix} if "clock" in parameters else {}
    return cast(Wsgi, found(**options))


def _documents(path: Path) -> list[Object]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="simulator", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("manifests", nargs="+", type=Path, metavar="MANIFEST.yaml")
    parser.add_argument("--controller", required=True, type=Path, help="CompositeController")
    hook = parser.add_mutually_exclusive_group(required=True)
    hook.add_argument("--hook", help="base URL of a running hook server")
    hook.add_argument("--wsgi", help="module:attribute of a WSGI application or its factory")
    parser.add_argument("--delete", action="store_true", help="delete everything at the end")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=3)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _arguments(arguments)
    clock = Clock()
    hook: HookClient = (
        HttpHook(options.hook) if options.hook else WsgiHook(load_application(options.wsgi, clock))
    )
    files = [(path, _documents(path)) for path in options.manifests]
    definitions = [
        document
        for _, documents in files
        for document in documents
        if document["kind"] == "CustomResourceDefinition"
    ]
    controller = next(
        document
        for document in _documents(options.controller)
        if document["kind"] == "CompositeController"
    )
    world = World(
        controller, hook, clock=clock, seed=options.seed, nodes=options.nodes, crds=definitions
    )
    timeline = Timeline(world, print)
    try:
        _play(world, timeline, files, delete=options.delete)
    except (ApiError, UnsettledError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _play(
    world: World, timeline: Timeline, files: list[tuple[Path, list[Object]]], *, delete: bool
) -> None:
    applied: dict[tuple[str, str, str], None] = {}
    for path, documents in files:
        timeline.say(f"== apply {path.name}")
        for document in documents:
            if document["kind"] == "CustomResourceDefinition":
                continue
            world.apply(document)
            home = namespace_of(document) or "default"
            applied[document["kind"], name_of(document), home] = None
        world.settle()
    if delete:
        timeline.say("== delete")
        for kind, name, home in reversed(applied):
            world.delete(kind, name, home)
        world.settle()


if __name__ == "__main__":
    sys.exit(main())
