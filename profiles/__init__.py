"""What was measured: speed curves, hardware, prices."""
