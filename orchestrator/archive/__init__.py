"""Archives: each job is stored once, permanently, before it is removed at the end of its retention."""
