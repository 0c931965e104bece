"""Claims: an item held by one consumer, its transitions, and the locks that prove it."""
