"""A small Kubernetes cluster with Metacontroller in one process, for trying hooks.

The simulator knows no particular hook. It reads a CompositeController manifest and calls the hook
over HTTP, or in process as a WSGI application. Time is simulated and every random choice is seeded,
so a scenario always produces the same events.

Objects are plain JSON values and *frozen by convention*: no code changes an object after it was
stored, cached or passed on; a write replaces the object. This is why a thousand pods cost little.

The entry point is `World` in `world.py`.
"""
