"""A JVM that is kept running for small SQL jobs: what its own process and the drivers in it do."""
