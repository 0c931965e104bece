"""The command line: thin, over `client` and `worker`."""
