"""Objects that outlive an instance's pod: claims and their growth, Services, and the history."""
