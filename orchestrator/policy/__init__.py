"""The policy: the clusters, files, code and ports that operators allow definitions to use."""
