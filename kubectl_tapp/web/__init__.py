"""`kubectl tapp web`: a page on which TApps are seen, asked and changed."""
