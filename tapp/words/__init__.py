"""Names, numbers and times: what everything else is said with."""
