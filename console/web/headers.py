"""Security headers and cookies: what browsers may do with our pages."""

from datetime import timedelta
from typing import Any

from flask import Flask, Response
from flask_login import current_user
from flask_talisman import DENY, SAMEORIGIN, Talisman

# No inline script and no inline style. Bootstrap's own style sheet draws its arrows from data: pictures.
POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "form-action": "'self'",
    "frame-src": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}

# For a page that shows a marketer's HTML: no script, no network, no forms, an origin of its own; mails style inline.
MAIL_POLICY = {
    "default-src": "'none'",
    "style-src": "'unsafe-inline'",
    "img-src": "data:",
    "frame-ancestors": "'self'",
    "form-action": "'none'",
    "base-uri": "'none'",
    "sandbox": "",
}


def init_app(app: Flask, *, is_https: bool) -> None:
    """Puts the headers on every answer; cookies are Secure, and HSTS is sent, when the public address is https."""
    app.config.update(
        SESSION_COOKIE_NAME="sendonce",
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
        SESSION_COOKIE_SECURE=is_https,
        PERMANENT_SESSION_LIFETIME=timedelta(hours=12),
    )
    Talisman(
        app,
        # The proxy in front ends TLS; a redirect from here could only loop.
        force_https=False,
        strict_transport_security=is_https,
        # Set above, from the first answer on; Talisman would set it from the second.
        session_cookie_secure=False,
        frame_options=DENY,
        content_security_policy=POLICY,
        referrer_policy="same-origin",
    )
    app.after_request(_keep_private)


def shows_mail(view: Any) -> Any:
    """Marks a view that shows a mail's own HTML in a frame of one of our pages."""
    view.talisman_view_options = {"frame_options": SAMEORIGIN, "content_security_policy": MAIL_POLICY}
    return view


def _keep_private(response: Response) -> Response:
    # What a signed-in person saw must not come back from a cache after the sign-out.
    if response.mimetype == "text/html" and current_user and current_user.is_authenticated:
        response.headers["Cache-Control"] = "no-store"
    return response
