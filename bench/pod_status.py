"""Third part: `/pod-status` over HTTP, how many calls one worker answers in a second.

Pods with a readiness gate that is open: the call that comes at every event of such a pod, and that
changes nothing. `echo` is the same gunicorn with a Flask route that reads the request and returns
an answer that is ready. The two take turns.
"""

import random
import statistics
from collections.abc import Iterator
from functools import cache
from itertools import chain

import msgspec
import yaml
from flask import Flask

from bench.client import Figures, Job, run
from bench.echo import Echo
from bench.inprocess import call, quiet
from bench.over_http import Row, Say, stored
from bench.parent import OLD, Document, tapp
from bench.pods import go, running
from bench.requests import desired
from bench.server import ROOT, serving

PATH = "/pod-status"
GATE = "apps.tkestack.io/InPlaceUpdateReady"
DECORATOR = "metacontroller/components/pod-status/decorator-controller.yaml"
ECHO = "bench.pod_status:echo()"
PODS = 50
CONNECTIONS = 4
"""Metacontroller runs a few workers; more calls at once only wait for each other."""
REQUESTS = 3_000
SECONDS = 10.0


def measure(rounds: int, say: Say, requests: int = REQUESTS) -> Row:
    """Calls per second of the service and of the echo, medians of so many turns."""
    bodies = requests_of(PODS)
    taken: dict[str, list[Figures]] = {"service": [], "echo": []}
    with stored(bodies) as files, serving(1) as service, serving(1, ECHO) as reference:
        for turn in range(rounds):
            say(f"{PATH}: turn {turn + 1} of {rounds}")
            for name, server in (("service", service), ("echo", reference)):
                job = Job(server.port, PATH, files, CONNECTIONS, requests, SECONDS)
                taken[name].append(run(job))
    rate = {
        name: statistics.median(each.per_second for each in found) for name, found in taken.items()
    }
    times = Figures(list(chain(*(each.milliseconds for each in taken["service"]))), 0.0)
    return {
        "bytes": round(statistics.mean(map(len, bodies))),
        "connections": CONNECTIONS,
        "requests": len(times.milliseconds),
        "p50Ms": round(times.quantile(0.5), 3),
        "p99Ms": round(times.quantile(0.99), 3),
        "perSecond": round(rate["service"], 1),
        "echoPerSecond": round(rate["echo"], 1),
        "timeToEcho": round(rate["echo"] / rate["service"], 2),
    }


@cache
def requests_of(count: int) -> list[bytes]:
    """Calls about so many pods, as Metacontroller sends them."""
    controller = yaml.load((ROOT / DECORATOR).read_text(), yaml.CSafeLoader)
    frame = {"attachments": {}, "related": {}, "finalizing": False}
    return [
        go({"controller": controller, "object": pod}).removesuffix(b"}") + b"," + go(frame)[1:]
        for pod in gated(count)
    ]


def gated(count: int) -> Iterator[Document]:
    """Pods whose gate is open."""
    rng = random.Random(1)  # noqa: S311 - sample data
    parent = tapp(count, OLD)
    parent["spec"]["template"]["spec"]["readinessGates"] = [{"conditionType": GATE}]
    for child in desired(parent):
        pod = running(child, rng, OLD)
        times = {"lastProbeTime": None, "lastTransitionTime": pod["status"]["startTime"]}
        opened = {**times, "reason": "NoUpdateInPlace", "status": "True", "type": GATE}
        pod["status"]["conditions"].append(opened)
        yield pod


def answer_to(body: bytes) -> bytes:
    """What the service answers; raises where that would change the pod."""
    answer = call(quiet(), PATH, body)
    if msgspec.json.decode(answer) != {"status": msgspec.json.decode(body)["object"]["status"]}:
        raise SystemExit(f"{PATH} changes a pod that it should leave alone")
    return answer


def echo() -> Flask:
    """The application that returns an answer of the service to whatever it is sent."""
    made = Echo(PATH)
    made.answer = answer_to(requests_of(PODS)[0])
    return made.app
