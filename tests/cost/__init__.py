"""Measures the CPU and memory of a sync with generated requests, each in a separate process."""
