"""The service's decisions about the live objects, and words for them."""
