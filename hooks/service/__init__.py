"""The surroundings of the hooks: settings, access, logs, metrics, events."""
