"""What a sync costs, as ratios to parsing its JSON in the same process."""
