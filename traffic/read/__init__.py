"""One file a format; the format is recognised from the content."""
