"""The parts that all others use: errors, arguments, objects as observed."""
