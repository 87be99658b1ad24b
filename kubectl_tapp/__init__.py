"""`kubectl tapp`: what a person asks of a TApp, answered by the code that decides.

It reads the cluster through the user's own kubectl (`cluster/`), makes of it the request that
Metacontroller would send (`base/observed.py`), and runs the real decisions on it, once (`decide/`)
or forward in time on the simulator (`forecast/`). Nothing is written that was not shown first.
"""
