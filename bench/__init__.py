"""The cost of a sync, as ratios to parsing its JSON in the same process."""
