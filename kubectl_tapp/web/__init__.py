"""`kubectl tapp web`: a page that shows, explains and changes TApps."""
