"""What stands for a row in URLs: its number, or a secret token. One that no row can have is a 404 like any other."""

from werkzeug.routing import BaseConverter, IntegerConverter


def _from_1_to(largest: int) -> str:
    """Gives a pattern of the whole numbers from 1 to `largest`, without zeros in front."""
    digits = str(largest)
    shorter = rf"[1-9][0-9]{{0,{len(digits) - 2}}}"
    smaller = [
        f"{digits[:place]}[{'1' if place == 0 else '0'}-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if int(digit) > (1 if place == 0 else 0)
    ]
    return "|".join([shorter, *smaller, digits])


class IdConverter(IntegerConverter):
    """Takes 1 to the largest bigint.

    By its pattern alone: were a number refused after the pattern has matched, and did the address take several methods,
    the router would answer that it takes another method.
    """

    regex = _from_1_to(2**63 - 1)


class TokenConverter(BaseConverter):
    """Takes what secrets.token_urlsafe(32) gives."""

    regex = r"[A-Za-z0-9_-]{43}"
