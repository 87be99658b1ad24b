"""What all tests share: hypothesis' profiles."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fast",
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", max_examples=3000, deadline=None)
settings.load_profile("fast")
