"""Put: one item, many items, or in the background, within the capacity of a pool."""
