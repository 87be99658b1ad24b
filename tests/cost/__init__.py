"""What a sync costs, whatever a tenant writes: generated requests, each in a process of its own."""
