"""What every part of the plugin is made of: errors, arguments, objects as observed."""
