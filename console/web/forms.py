"""The base of all forms: CSRF token, trimmed text, and errors beside their fields."""

from flask_wtf import FlaskForm
from wtforms.fields import choices

# One choice of a list. (The stubs that pyright brings for WTForms are older than this class.)
SelectChoice = choices.SelectChoice  # pyright: ignore[reportAttributeAccessIssue]


def trimmed(value: str | None) -> str | None:
    """Gives the text without blanks at its ends; a filter for single-line fields."""
    return value.strip() if value else value


class Form(FlaskForm):
    """A form with a CSRF token. Its fields are drawn by templates/parts/fields.html."""

    def validate(self, extra_validators=None) -> bool:
        """Refuses, in every field, the one character that PostgreSQL can't keep; then what each field refuses."""
        is_valid = super().validate(extra_validators)
        for field in self:
            if isinstance(field.data, str) and "\x00" in field.data:
                field.errors = [*field.errors, "Take out the zero character (NUL); it can't be kept."]
                is_valid = False
        return is_valid
