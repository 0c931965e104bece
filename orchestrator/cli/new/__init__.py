"""`orchestrator new`: a script and a definition that run at once."""
