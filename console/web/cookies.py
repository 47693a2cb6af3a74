"""Which requests have a session: those of browsers. What programs call reads no cookie and sets none."""

from flask import Flask, Request
from flask.sessions import SecureCookieSession, SecureCookieSessionInterface

from console.web.problem_documents import is_machine_path


class _BrowserSessions(SecureCookieSessionInterface):
    """Flask's own sessions, but for programs, who get one that nothing can be put into."""

    def open_session(self, app: Flask, request: Request) -> SecureCookieSession | None:
        if is_machine_path(request.path):
            return self.make_null_session(app)
        return super().open_session(app, request)


def init_app(app: Flask) -> None:
    """Keeps cookies away from what programs call."""
    app.session_interface = _BrowserSessions()
