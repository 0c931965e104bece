"""A campaign: hostile users, jobs and definitions try what docs/security.md says is prevented."""
