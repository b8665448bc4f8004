"""The command line: one file a command; only this package prints and exits."""
