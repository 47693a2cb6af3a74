"""The sign-in form."""

from wtforms import EmailField, PasswordField, StringField
from wtforms.validators import DataRequired, InputRequired, Length

from console.web.forms import Form, trimmed


class SignInForm(Form):
    """Account, address and password."""

    account = StringField(
        "Account",
        filters=[trimmed],
        validators=[DataRequired("Fill in the account's name."), Length(max=100)],
        description="The short name that your admin gave you, such as demo.",
    )
    email = EmailField(
        "E-mail address",
        filters=[trimmed],
        validators=[DataRequired("Fill in your e-mail address."), Length(max=320)],
    )
    password = PasswordField("Password", validators=[InputRequired("Fill in your password."), Length(max=1000)])
