"""A stateful model test: random lives of a TApp in the simulator, judged by the true cluster."""
