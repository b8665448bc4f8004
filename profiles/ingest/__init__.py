"""Result files of benchmark tools, as points of a profile: one module a tool, recognised by what the file holds."""
