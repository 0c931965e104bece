"""Redis: strings, hashes, lists, sets, sorted sets and streams, of one server, Sentinel or Cluster."""
