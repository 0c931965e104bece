"""The dispatcher: claimed items go to handlers and their outcomes are committed; and claims on demand."""
