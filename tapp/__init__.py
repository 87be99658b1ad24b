"""TApp's decisions: values in, values out.

Nothing here reads a clock, a file, the environment or a socket; `hooks` does.
"""
