"""The forms of accounts: signing in, and API keys."""

from wtforms import EmailField, IntegerField, PasswordField, SelectMultipleField, StringField
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange
from wtforms.widgets import CheckboxInput, ListWidget

from console.accounts.keys import CALLS_PER_MINUTE, LONGEST_NAME, MOST_CALLS_PER_MINUTE
from console.web.forms import Form, SelectChoice, trimmed

SLUG_CHARS_LIMIT = 100
EMAIL_CHARS_LIMIT = 320


class SignInForm(Form):
    """Account, address and password."""

    account = StringField(
        "Account",
        filters=[trimmed],
        validators=[DataRequired("Fill in the account's name."), Length(max=SLUG_CHARS_LIMIT)],
        description="The short name that your admin gave you, such as demo.",
    )
    email = EmailField(
        "E-mail address",
        filters=[trimmed],
        validators=[DataRequired("Fill in your e-mail address."), Length(max=EMAIL_CHARS_LIMIT)],
    )
    password = PasswordField("Password", validators=[InputRequired("Fill in your password."), Length(max=1000)])


class ApiKeyForm(Form):
    """What a new key is for, and what it may do."""

    name = StringField(
        "What it is for",
        filters=[trimmed],
        validators=[DataRequired("Say what the key is for, so that you know it again."), Length(max=LONGEST_NAME)],
        description="Such as: the shop's server.",
    )
    scopes = SelectMultipleField(
        "What it may do",
        choices=[
            SelectChoice("send", "send: hand in messages, and cancel those that wait"),
            SelectChoice("read", "read: messages, suppressions and campaigns"),
            SelectChoice("suppress", "suppress: stop mail to an address, and allow it again"),
        ],
        widget=ListWidget(prefix_label=False),
        option_widget=CheckboxInput(),
        validators=[InputRequired("Choose what the key may do.")],
    )
    calls_per_minute = IntegerField(
        "Calls per minute",
        default=CALLS_PER_MINUTE,
        validators=[
            InputRequired("Fill in a number."),
            NumberRange(1, MOST_CALLS_PER_MINUTE, f"Use 1 to {MOST_CALLS_PER_MINUTE:,}."),
        ],
        description="More are answered with status 429. Each message of a batch counts.",
    )


class RevokeForm(Form):
    """Nothing but the token: the page has asked."""
