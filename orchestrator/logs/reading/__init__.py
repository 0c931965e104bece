"""Looking at logs: in Elasticsearch, and in the spools of this host."""
