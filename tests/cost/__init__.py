"""Measures the CPU and memory of a sync for generated requests, each in a separate process.

A *case* combines three parts. The field is a place in the request, for example an image. The
*shape* is the rule for the field's value, for example one long text or many small entries
(`shapes.py`). The *world* is the rest of the request, for example a TApp that creates all its pods
(`worlds.py`). Work is counted in *steps* (`steps.py`), which are equal on every machine.
"""
