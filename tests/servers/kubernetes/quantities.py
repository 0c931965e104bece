"""Quantities of memory in Kubernetes' notation."""

_UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def bytes_of(quantity: str) -> int:
    """`1433Mi` -> 1502609408."""
    for unit, size in _UNITS.items():
        if quantity.endswith(unit):
            return int(quantity.removesuffix(unit)) * size
    return int(quantity)
