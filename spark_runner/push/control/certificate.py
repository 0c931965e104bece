"""The certificate by which tasks on other machines know their driver: made for one driver, and on no disk.

The JRE of the driver makes it, for Python has no means to: its `keytool` has a key store in a private folder
for a moment, whose password no list of processes shows.
"""

import base64
import os
import secrets
import ssl
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from spark_runner.protocol.pem import load_chain
from spark_runner.push.errors import PushError

_ALIAS, _PASSWORD = "control", "PUSH_CONTROL_PASSWORD"
_DAYS = "3650"  # of a driver that runs for long; the certificate ends with its process
_KEYTOOL_S = 60


class NoCertificate(PushError):
    """The JRE of the driver could not make a certificate."""


def make_certificate(gateway: Any) -> tuple[ssl.SSLContext, str]:
    """A context for a server with a new key, and its certificate as PEM; `gateway` is that of py4j.

    Raises NoCertificate.
    """
    password = secrets.token_urlsafe(32)
    with tempfile.TemporaryDirectory(prefix="push-control-") as folder:  # for its owner alone
        store = Path(folder, "store.p12")
        where = [
            "-alias",
            _ALIAS,
            "-storetype",
            "PKCS12",
            "-keystore",
            str(store),
            "-storepass:env",
            _PASSWORD,
        ]
        kind = ["-keyalg", "EC", "-groupname", "secp256r1", "-validity", _DAYS, "-dname", f"CN={_ALIAS}"]
        _keytool(gateway.jvm, ["-genkeypair", *kind, *where], password)
        certificate = _keytool(gateway.jvm, ["-exportcert", "-rfc", *where], password)
        key = _key(gateway, store.read_bytes(), password)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_chain(context, key + certificate)
    return context, certificate


def _keytool(jvm: Any, arguments: list[str], password: str) -> str:
    program = Path(jvm.java.lang.System.getProperty("java.home"), "bin", "keytool")
    environment = {**os.environ, _PASSWORD: password}
    try:
        done = subprocess.run(
            [str(program), *arguments], env=environment, check=True, capture_output=True, timeout=_KEYTOOL_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        output = getattr(error, "stdout", None) or b""
        words = output.decode("utf-8", "replace").strip() or str(error)
        raise NoCertificate(f"{program} made no certificate: {words}") from error
    return done.stdout.decode()


def _key(gateway: Any, store: bytes, password: str) -> str:
    """The private key in a key store, as PEM."""
    java = gateway.jvm.java
    characters = gateway.new_array(gateway.jvm.char, len(password))
    for index, character in enumerate(password):
        characters[index] = character
    loaded = java.security.KeyStore.getInstance("PKCS12")
    loaded.load(java.io.ByteArrayInputStream(bytearray(store)), characters)
    # The module of the class of the key itself does not export it.
    form = java.lang.Class.forName("java.security.spec.PKCS8EncodedKeySpec")
    key = java.security.KeyFactory.getInstance("EC").getKeySpec(loaded.getKey(_ALIAS, characters), form)
    data = base64.encodebytes(bytes(key.getEncoded())).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{data}-----END PRIVATE KEY-----\n"
