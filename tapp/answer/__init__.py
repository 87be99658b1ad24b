"""Writes a plan as the response to Metacontroller: children, status, conditions and Events."""
