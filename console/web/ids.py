"""The `<id:...>` of URLs: a row's number. One that no row can have is a 404 like any other that isn't there."""

from werkzeug.routing import IntegerConverter


class IdConverter(IntegerConverter):
    """Takes 1 to the largest bigint."""

    regex = r"[0-9]{1,19}"

    def __init__(self, url_map):
        super().__init__(url_map, min=1, max=2**63 - 1)
