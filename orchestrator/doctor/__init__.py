"""What may be wrong with a cluster: found, explained and, where that is safe, mended."""
