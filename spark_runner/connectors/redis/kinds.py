"""What each command of a table writes and reads."""

TYPES = {
    "SET": "string",
    "HSET": "hash",
    "LPUSH": "list",
    "RPUSH": "list",
    "SADD": "set",
    "ZADD": "zset",
    "XADD": "stream",
}
"""The type of the values of a command, as Redis names it."""

REPLACING = frozenset({"SET", "HSET", "SADD", "ZADD"})
"""Commands that change nothing when the same row comes again."""
