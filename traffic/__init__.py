"""What users send: traces, arrivals, lengths."""
