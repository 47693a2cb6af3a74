"""Secrets of others that we must be able to say again (provider passwords, webhook secrets), sealed for the database.

What only has to be compared (API keys, our own passwords) is hashed instead and does not belong here.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from console.errors import ConfigError

_PURPOSE = b"sendonce: secrets in the database"


def seal(secret_key: str, text: str) -> str:
    """Gives the text encrypted and signed, as ASCII; another one at each call."""
    return _fernet(secret_key).encrypt(text.encode()).decode("ascii")


def unseal(secret_key: str, sealed: str) -> str:
    """Gives the text that was sealed.

    Raises: ConfigError when it was sealed with another key, or was changed since.
    """
    try:
        return _fernet(secret_key).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise ConfigError(
            "A secret in the database was sealed with another SENDONCE_SECRET_KEY. Set the key that was in use then,"
            " or enter the secret again."
        ) from None


@lru_cache(maxsize=4)
def _fernet(secret_key: str) -> Fernet:
    # SENDONCE_SECRET_KEY also signs links and sessions; a key of its own for each use (RFC 5869, 3.2).
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(key))
