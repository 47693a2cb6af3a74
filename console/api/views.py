"""The whole API as one blueprint, with its document. What is called stands in the other views of this area."""

from functools import cache

from flask import Response

from console.api import campaign_views, email_views, suppression_views
from console.api.document import document
from console.api.gate_views import api, init_app, reply
from console.web.guards import public

__all__ = ["api", "campaign_views", "email_views", "init_app", "suppression_views"]


@api.get("/openapi.json", endpoint="openapi")
@public
def openapi() -> Response:
    """Gives the OpenAPI document; no key is needed to read it."""
    return _document()


@cache
def _document() -> Response:
    return reply(document())
