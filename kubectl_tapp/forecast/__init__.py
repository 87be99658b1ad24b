"""Forecasts of an edit: the service's decisions, run on a simulated cluster."""
