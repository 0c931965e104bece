"""References to values that no plan may hold: their text, and their sources in a driver."""
