"""What then happens, and the bill."""
