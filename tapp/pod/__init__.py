"""Facts that one pod tells, alone."""
