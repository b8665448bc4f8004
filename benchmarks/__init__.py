"""Speed, measured in ratios within one run; never a test."""
