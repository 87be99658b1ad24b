"""Errors, arguments, manifests and observed objects: code that all other packages of the plugin
use.
"""
