"""Names, numbers and times: what everything else is written with."""
