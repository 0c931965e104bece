"""Where jobs go at the end of their retention: each once, for good before anything of it is removed."""
