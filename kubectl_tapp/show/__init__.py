"""Text and pages for people."""
