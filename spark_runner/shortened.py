"""Shortens long texts for people."""


def shortened(text: str, limit: int) -> str:
    """`text`, or its two ends with the number of characters left out between them."""
    if len(text) <= limit:
        return text
    kept = limit // 2
    return f"{text[:kept]} [... {len(text) - 2 * kept:,} characters ...] {text[-kept:]}"
