"""The forms of the ledger's area: a reason for what people decide, templates, message types."""

from collections.abc import Sequence
from dataclasses import replace

from wtforms import HiddenField, IntegerField, SelectField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, Optional

from console.content.compile import PART_CHARS_LIMIT, SENDER_CHARS_LIMIT, SUBJECT_CHARS_LIMIT
from console.sends.message_types import (
    AGE_CAPS_S,
    ATTEMPT_CAP,
    ATTEMPT_CAP_LIMIT,
    LANES,
    PATTERN_CHARS_LIMIT,
    seconds,
)
from console.sends.settle import REASON_CHARACTERS
from console.sends.type_store import TypeRow
from console.sends.words import CONFLICTS, DOUBTS, LANE_WORDS, MODES
from console.web.forms import Form, SelectChoice, trimmed

_NAME = "a-z, 0-9, '_', '.' and '-'; programs name it so, and it can't be changed later."


class SettleForm(Form):
    """Why; the set itself is in the address."""

    reason = StringField(
        "Reason",
        filters=[trimmed],
        validators=[DataRequired("Say why."), Length(max=REASON_CHARACTERS)],
        description="Kept with each message and in the audit log.",
    )


class TemplateForm(Form):
    """What messages of a kind say. `version` is the one that the author saw."""

    version = HiddenField(filters=[lambda value: int(value) if str(value).isdecimal() and len(str(value)) < 10 else 0])
    name = StringField(
        "Name",
        filters=[trimmed],
        validators=[DataRequired("Give the template a name."), Length(max=63)],
        description=_NAME,
    )
    subject = StringField(
        "Subject",
        filters=[trimmed],
        validators=[DataRequired("Fill in the subject."), Length(max=SUBJECT_CHARS_LIMIT)],
        description="May hold merge fields, such as {{ order_id }}.",
    )
    html = TextAreaField(
        "HTML",
        validators=[DataRequired("Write the message."), Length(max=PART_CHARS_LIMIT)],
        description="With merge fields: parameters of the request. {{ name | default('there') }} does without one.",
    )
    text = TextAreaField(
        "Plain text",
        validators=[Optional(), Length(max=PART_CHARS_LIMIT)],
        description="For readers without HTML. Leave it empty to have it made from the HTML.",
    )


class CampaignTypeForm(Form):
    """What can be set of every type. `seen` tells how the type stood on the page."""

    seen = HiddenField()
    in_doubt_policy = SelectField("In doubt", choices=[SelectChoice(value, word) for value, word in DOUBTS.items()])
    attempt_cap = IntegerField(
        "Attempts",
        default=ATTEMPT_CAP,
        validators=[
            InputRequired("Say how many attempts."),
            NumberRange(min=1, max=ATTEMPT_CAP_LIMIT, message=f"Attempts are 1 to {ATTEMPT_CAP_LIMIT:,}."),
        ],
        description="After so many it is a dead letter.",
    )
    max_age = StringField(
        "Given up after",
        filters=[trimmed],
        validators=[Length(max=20)],
        description="Such as 15m, 24h or 4d, from when it is due. Empty: 15m in the lane urgent, else 4d.",
    )

    def row(self, name: str, *, before: TypeRow | None = None) -> TypeRow:
        """Gives the type as the form has it. Raises: InvalidInput naming the field."""
        assert before is not None
        return self._with_caps(before)

    def _with_caps(self, row: TypeRow) -> TypeRow:
        age = self.max_age.data
        return replace(
            row,
            in_doubt_policy=self.in_doubt_policy.data,
            attempt_cap=self.attempt_cap.data or 0,
            age_cap_s=seconds(age, field="max_age") if age else AGE_CAPS_S[row.lane],
        )


class MessageTypeForm(CampaignTypeForm):
    """How messages of one kind are made and treated."""

    name = StringField("Name", filters=[trimmed], validators=[Length(max=63)], description=_NAME)
    lane = SelectField(
        "Lane", choices=[SelectChoice(lane, f"{lane}: {LANE_WORDS[lane]}") for lane in LANES], default="normal"
    )
    template = SelectField("Template", description="Without one, programs hand over finished parts.")
    sender = StringField(
        "From",
        filters=[trimmed],
        validators=[DataRequired("Fill in the sender."), Length(max=SENDER_CHARS_LIMIT)],
        description="An address, or a name and an address: Shop <shop@example.com>",
    )
    route = SelectField("Route", description="The providers that its messages go by.")
    key_pattern = StringField(
        "Key pattern",
        filters=[trimmed],
        validators=[Length(max=PATTERN_CHARS_LIMIT)],
        description="Makes the dedupe key, such as order_receipt:{order_id}:{email_type}: names are those of parameters"
        " and entities, or recipient and date (of the day, in UTC). Empty: each request gives its own.",
    )
    window = StringField(
        "Key is taken",
        filters=[trimmed],
        default="forever",
        validators=[DataRequired("Write forever, or a duration."), Length(max=20)],
        description="forever, or a duration such as 24h, after which the same key makes a message again.",
    )
    mode = SelectField("Repeats", choices=[SelectChoice(value, word) for value, word in MODES.items()])
    on_conflict = SelectField(
        "Same key, other content", choices=[SelectChoice(value, word) for value, word in CONFLICTS.items()]
    )

    def offer(self, *, templates: Sequence[str], routes: Sequence[str]) -> None:
        """Says what there is to choose from."""
        self.template.choices = [SelectChoice("", "none"), *map(SelectChoice, templates)]
        self.route.choices = [SelectChoice("", "the account's default"), *map(SelectChoice, routes)]
        for field in (self.template, self.route):
            field.data = field.data or ""

    def row(self, name: str, *, before: TypeRow | None = None) -> TypeRow:
        """Gives the type as the form has it. Raises: InvalidInput naming the field."""
        window = self.window.data or ""
        return self._with_caps(
            TypeRow(
                name=name,
                lane=self.lane.data,
                template=self.template.data or None,
                sender=self.sender.data,
                route=self.route.data or None,
                window_s=None if window == "forever" else seconds(window, field="window"),
                mode=self.mode.data,
                on_conflict=self.on_conflict.data,
                key_pattern=self.key_pattern.data or None,
                in_doubt_policy=self.in_doubt_policy.data,
                attempt_cap=self.attempt_cap.data or 0,
                age_cap_s=1,
            )
        )
