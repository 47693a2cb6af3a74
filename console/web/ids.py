"""What stands for a row in URLs: its number, or a secret token. One that no row can have is a 404 like any other."""

from werkzeug.routing import BaseConverter, IntegerConverter


class IdConverter(IntegerConverter):
    """Takes 1 to the largest bigint."""

    regex = r"[0-9]{1,19}"

    def __init__(self, url_map):
        super().__init__(url_map, min=1, max=2**63 - 1)


class TokenConverter(BaseConverter):
    """Takes what secrets.token_urlsafe(32) gives."""

    regex = r"[A-Za-z0-9_-]{43}"
