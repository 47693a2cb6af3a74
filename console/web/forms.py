"""The base of all forms: CSRF token, trimmed text, and errors beside their fields."""

from flask_wtf import FlaskForm


def trimmed(value: str | None) -> str | None:
    """Gives the text without blanks at its ends; a filter for single-line fields."""
    return value.strip() if value else value


class Form(FlaskForm):
    """A form with a CSRF token. Its fields are drawn by templates/parts/fields.html."""
