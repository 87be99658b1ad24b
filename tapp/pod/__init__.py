"""Facts and rules about a single pod, without knowledge of the TApp's other pods."""
