"""The recorded terminal of docs/push.md: `python -m tests.recording docs/push-watch.cast` makes it anew."""
