"""TApps as they are and become: models that watches keep up to date, and what of them changes."""
