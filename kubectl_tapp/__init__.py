"""`kubectl tapp`: what a person asks of a TApp, answered by the code that decides.

It reads the cluster through the user's own kubectl (`cluster.py`), makes of it the request that
Metacontroller would send (`observed.py`), and runs the real decisions on it, once (`decisions.py`)
or forward in time on the simulator (`forecast.py`). Nothing is written that was not shown first.
"""
