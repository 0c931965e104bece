"""Certificates and keys as PEM that are in memory alone."""

import os
import ssl


def load_chain(context: ssl.SSLContext, chain: str, password: str = "") -> None:
    """Load a private key with its certificates into a context, from a file that is on no disk.

    OpenSSL reads files alone. Raises OSError and ValueError (ssl.SSLError is an OSError) if they do not fit.
    """
    file = os.memfd_create("certificate")
    try:
        with open(file, "w", closefd=False) as out:
            out.write(chain)
        context.load_cert_chain(f"/proc/self/fd/{file}", password=lambda: password)
    finally:
        os.close(file)
