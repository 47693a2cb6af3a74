"""The forms of campaigns: writing one, approving it, and saying why."""

from wtforms import DateField, HiddenField, RadioField, SelectField, StringField, TextAreaField, TimeField
from wtforms.validators import DataRequired, InputRequired, Length, Optional

from console.campaigns.schedule import zones
from console.campaigns.service import NAME_CHARS_LIMIT
from console.content.compile import SENDER_CHARS_LIMIT, SUBJECT_CHARS_LIMIT
from console.web.forms import Form, SelectChoice, trimmed

HTML_CHARACTERS = 1_000_000


class CampaignForm(Form):
    """What a campaign is called, whom it goes to and what it says."""

    name = StringField(
        "Name",
        filters=[trimmed],
        validators=[DataRequired("Give the campaign a name."), Length(max=NAME_CHARS_LIMIT)],
        description="For you and your colleagues; recipients don't see it.",
    )
    list_id = SelectField("List", coerce=int, validators=[InputRequired("Choose the list that is mailed.")])
    sender = StringField(
        "From",
        filters=[trimmed],
        validators=[DataRequired("Fill in the sender."), Length(max=SENDER_CHARS_LIMIT)],
        description="An address, or a name and an address: News <news@example.com>",
    )
    subject = StringField(
        "Subject",
        filters=[trimmed],
        validators=[DataRequired("Fill in the subject."), Length(max=SUBJECT_CHARS_LIMIT)],
        description="May hold merge fields, such as {{ first_name | default('there') }}.",
    )
    html = TextAreaField(
        "HTML",
        validators=[DataRequired("Write the message."), Length(max=HTML_CHARACTERS)],
        description="The message with its merge fields. {{ unsubscribe_url }} becomes each person's own link.",
    )
    text = TextAreaField(
        "Plain text",
        validators=[Optional(), Length(max=HTML_CHARACTERS)],
        description="For readers without HTML. Leave it empty to have it made from the HTML.",
    )


class ConfirmForm(Form):
    """Nothing but the confirmation itself."""


class ReasonForm(Form):
    """A reason that may be given."""

    reason = StringField(
        "Reason", filters=[trimmed], validators=[Length(max=500)], description="Optional; shown on the campaign's page."
    )


class RejectForm(Form):
    """A reason that must be given."""

    reason = StringField(
        "What must be changed?",
        filters=[trimmed],
        validators=[DataRequired("Say what must be changed, so that the author can do it."), Length(max=500)],
        description="The author reads this on the campaign's page.",
    )


class ApproveForm(Form):
    """When to start, and the fingerprint of what the approver has seen."""

    # Empty would approve whatever is there; only a page that showed something may approve it.
    fingerprint = HiddenField(validators=[DataRequired("Open the page again: it lacks the fingerprint.")])
    when = RadioField(
        "When to start",
        choices=[SelectChoice("now", "At once, when I approve it"), SelectChoice("later", "At this date and time:")],
        default="now",
    )
    date = DateField("Date", validators=[Optional()])
    time = TimeField("Time", validators=[Optional()])
    zone = SelectField("Time zone", default="UTC", validators=[Optional()])

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.zone.choices = [SelectChoice(zone) for zone in zones()]

    def validate(self, extra_validators=None) -> bool:
        """Asks for date and time when they are needed, and what is meant when they are filled in but not chosen."""
        is_valid = super().validate(extra_validators)
        if self.when.data == "later":
            for field, words in ((self.date, "Choose the date."), (self.time, "Choose the time.")):
                if field.data is None and not field.errors:
                    field.errors = [words]
        elif self.date.data or self.time.data:
            self.when.errors = [
                "You filled in a date or time, but chose to start at once. Choose the date and time, or empty them."
            ]
        return is_valid and not (self.when.errors or self.date.errors or self.time.errors)
