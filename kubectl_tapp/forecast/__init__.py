"""The future of an edit, played by the real decisions on the simulator."""
