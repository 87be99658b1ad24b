"""The page's model of TApps, kept up to date by watches, and its changes."""
