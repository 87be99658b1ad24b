"""`kubectl tapp`: shows, explains and changes TApps, with the code that the service decides with.

The plugin reads the cluster through the user's own kubectl (`cluster/`) and builds the sync request
that Metacontroller would send (`base/observed.py`). It runs the service's decisions on this request
once (`decide/`), or forward in time on the simulator (`forecast/`). It shows each change before it
writes the change.
"""
