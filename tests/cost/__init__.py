"""Measures the CPU and memory of a sync with generated requests, each in a process of its own."""
