"""The form of what a person decides about dead letters and messages in doubt."""

from wtforms import StringField
from wtforms.validators import DataRequired, Length

from console.sends.settle import REASON_CHARACTERS
from console.web.forms import Form, trimmed


class SettleForm(Form):
    """Why; the set itself is in the address."""

    reason = StringField(
        "Reason",
        filters=[trimmed],
        validators=[DataRequired("Say why."), Length(max=REASON_CHARACTERS)],
        description="Kept with each message and in the audit log.",
    )
