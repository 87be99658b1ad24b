"""A stateful model test: random lives of a TApp on the embedded cluster, judged from outside."""
