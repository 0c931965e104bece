"""Reading of logs, from Elasticsearch and from the spools of this host."""
