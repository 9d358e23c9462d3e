"""The command line: one module a command, which is imported when that command is asked for."""
