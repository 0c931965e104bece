"""The proof of a password that PostgreSQL asks for: SCRAM-SHA-256 of RFC 5802 and RFC 7677."""

import base64
import hashlib
import hmac
import secrets
import unicodedata

MECHANISM = "SCRAM-SHA-256"


class ScramError(Exception):
    """The server does not know the password, or its messages are no SCRAM."""


class ScramClient:
    """One exchange of four messages; the server proves that it knows the password, too."""

    def __init__(self, password: str, nonce: str = "") -> None:
        self._password = unicodedata.normalize("NFKC", password).encode()
        self._nonce = nonce or base64.b64encode(secrets.token_bytes(18)).decode()
        self._first = f"n=,r={self._nonce}"  # the server takes the user from the login
        self._signature = b""
        self.is_open = False  # the password was proved to the server, and the server has yet to prove it

    def first(self) -> bytes:
        """The first message of the client."""
        return f"n,,{self._first}".encode()

    def final(self, challenge: bytes) -> bytes:
        """The answer to the first message of the server; raises ScramError."""
        text = challenge.decode()
        try:
            parts = dict(part.split("=", 1) for part in text.split(","))
            nonce, salt, rounds = parts["r"], base64.b64decode(parts["s"]), int(parts["i"])
        except (ValueError, KeyError) as error:
            raise ScramError("the server sent a wrong challenge") from error
        if not nonce.startswith(self._nonce):
            raise ScramError("the server answered another login")
        salted = hashlib.pbkdf2_hmac("sha256", self._password, salt, rounds)
        without_proof = f"c=biws,r={nonce}"
        message = f"{self._first},{text},{without_proof}".encode()
        key = _hmac(salted, b"Client Key")
        signature = _hmac(hashlib.sha256(key).digest(), message)
        self._signature = _hmac(_hmac(salted, b"Server Key"), message)
        self.is_open = True
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def check(self, verifier: bytes) -> None:
        """Raise ScramError if the server does not know the password."""
        if not hmac.compare_digest(verifier, b"v=" + base64.b64encode(self._signature)):
            raise ScramError("the server does not know the password: it may be another one")
        self.is_open = False


def _hmac(key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, "sha256")
