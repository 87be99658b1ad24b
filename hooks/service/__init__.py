"""What surrounds the hooks: settings, access, logs, metrics, events."""
