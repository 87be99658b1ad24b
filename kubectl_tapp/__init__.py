"""`kubectl tapp`: shows, explains, plans and makes changes of TApps with the service's own code.

It reads the cluster through the user's kubectl (`cluster/`) and builds the request that
Metacontroller would send (`base/observed.py`). It runs the service's decisions on this request,
once (`decide/`) or repeatedly on a simulated cluster (`forecast/`). It writes only changes that
were shown first.
"""
