"""The service's decisions about live objects, and sentences about them for users."""
