"""Elasticsearch: documents of an index, written by bulk requests and read in slices of a point in time."""
