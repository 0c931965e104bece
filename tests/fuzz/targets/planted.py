"""Planted defects of each kind, behind words that only coverage finds: they test the fuzzer."""

import os

from tests.fuzz.promises import Broken

_KIND = os.environ.get("PLANTED_DEFECT", "")
_BYTES = 700 * 1024**2


def try_input(data: bytes) -> None:
    """Break one promise for a few inputs."""
    if len(data) < 3 or data[0] != ord("b"):
        return
    if data[1] != ord("u"):
        return
    if data[2] != ord("g"):
        return
    match _KIND:
        case "error":
            raise Broken("planted")
        case "hang":
            while True:
                pass
        case "memory":
            taken = bytearray(os.urandom(1024)) * (_BYTES // 1024)
            while taken:
                pass
