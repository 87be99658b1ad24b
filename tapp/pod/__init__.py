"""What one pod tells, alone."""
