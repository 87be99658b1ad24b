"""Fuzzes the whole service in this process: at length with `make fuzz`, and shortly in `make
test`.
"""
