"""Long texts where people read them."""


def shortened(text: str, limit: int) -> str:
    """`text`, or its two ends with how much is left out between them."""
    if len(text) <= limit:
        return text
    kept = limit // 2
    return f"{text[:kept]} [... {len(text) - 2 * kept:,} characters ...] {text[-kept:]}"
