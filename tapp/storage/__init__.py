"""What outlives a pod: claims, their growth, and the history of templates."""
