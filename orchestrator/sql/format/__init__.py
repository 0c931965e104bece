"""The canonical form of scripts: only space, the case of keywords and, if asked for, the dialect change."""
