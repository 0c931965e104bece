"""One file per kind of input; its seeds and its dictionary have the same name."""
