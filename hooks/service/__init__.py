"""The service around the hooks: settings, authentication, logs, metrics, Events and resizes."""
