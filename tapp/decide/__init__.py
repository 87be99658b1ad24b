"""What each instance needs, and what may happen now."""
