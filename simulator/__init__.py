"""A small cluster with Metacontroller's semantics, for trying hooks without Kubernetes.

It knows nothing about any particular hook: it reads a CompositeController manifest and talks
to the hook over HTTP or in process (WSGI). Time is simulated and every choice is seeded, so the
same scenario always gives the same events.

Objects are plain JSON values and *frozen by convention*: whoever stores, caches or passes one on
never mutates it, a write replaces it. That is what makes a thousand pods cheap.

Start reading at `world.py`.
"""
