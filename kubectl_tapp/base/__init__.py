"""Errors, arguments, manifests and observed objects, which every other room of the plugin uses."""
