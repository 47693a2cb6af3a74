"""The form that asks for a timeline. It is sent by GET, changes nothing, and needs no token."""

from datetime import UTC, datetime, timedelta

from wtforms import DateTimeLocalField, SelectField, StringField
from wtforms.validators import DataRequired, Length, Optional

from console.incidents.service import ID_CHARACTERS, Timeline
from console.web.forms import Form, SelectChoice, trimmed

_FORMATS = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"]
_STEP = {"step": "1"}


class TimelineForm(Form):
    """Whose timeline, and of when. Moments are UTC."""

    recipient = StringField(
        "Address or id",
        filters=[trimmed],
        validators=[DataRequired("Give an address, or an id of a message."), Length(max=ID_CHARACTERS)],
        description="A message's number, Message-ID, dedupe key, correlation id or provider's id does as well.",
    )
    since = DateTimeLocalField("From", name="from", format=_FORMATS, validators=[Optional()], render_kw=_STEP)
    until = DateTimeLocalField("To", name="to", format=_FORMATS, validators=[Optional()], render_kw=_STEP)
    message_type = SelectField("Message type", name="type", default="", choices=[SelectChoice("", "all")])

    def offer(self, message_types: list[str]) -> None:
        """Fills the list of message types."""
        self.message_type.choices = [SelectChoice("", "all"), *(SelectChoice(name, name) for name in message_types)]

    def window(self) -> tuple[datetime | None, datetime | None]:
        """Gives the moments that were chosen."""
        since, until = (each and each.replace(tzinfo=UTC) for each in (self.since.data, self.until.data))
        return since, until

    def show(self, found: Timeline) -> None:
        """Fills the form with what was found, to the second and no shorter."""
        self.recipient.data = found.recipient
        self.since.data = found.start.astimezone(UTC).replace(microsecond=0)
        self.until.data = (found.end.astimezone(UTC) + timedelta(seconds=0.999999)).replace(microsecond=0)
        # What was typed comes first otherwise.
        self.since.raw_data = self.until.raw_data = None
