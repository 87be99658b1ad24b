"""Tests the service with random lives of a TApp in the simulator; a judge compares with the true
cluster.

A *life* is a random sequence of events: edits of users, failures of nodes, lost requests and so on.
The judge checks every write, and knows the true state of processes that no status shows.
"""
