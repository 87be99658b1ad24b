"""Things that outlive a pod: claims, their growth, and the history of templates."""
