"""Python packages of jobs: installed once per host, into folders that are complete or absent."""
