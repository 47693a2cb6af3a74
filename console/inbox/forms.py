"""The forms of the inbox: an endpoint, a rule, trying a rule out, and what only confirms."""

from wtforms import HiddenField, IntegerField, PasswordField, SelectField, StringField, SubmitField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length, NumberRange, Optional

from console.inbox.paths import LONGEST_PATH
from console.inbox.service import NAME_HINT, Wanted
from console.inbox.words import SCHEMES
from console.web.forms import Form, SelectChoice, trimmed

LONGEST_LINES = 20_000


class EndpointForm(Form):
    """How an endpoint's events are verified and where they carry what."""

    scheme = SelectField("Signature", choices=[SelectChoice(kind, words) for kind, words in SCHEMES.items()])
    secret = PasswordField(
        "Secret",
        validators=[Optional(), Length(max=1000)],
        description="What the sender signs with: whsec_… for Standard Webhooks, USER:PASSWORD for Basic. Kept sealed.",
    )
    signature_header = StringField(
        "Signature header",
        filters=[trimmed],
        validators=[Length(max=100)],
        description="For HMAC-SHA256, such as X-Hub-Signature-256.",
    )
    signature_prefix = StringField(
        "Before the signature",
        filters=[trimmed],
        validators=[Length(max=50)],
        description="For HMAC-SHA256, such as sha256=. Usually nothing.",
    )
    signature_encoding = SelectField(
        "Written in", choices=[SelectChoice("hex", "hex"), SelectChoice("base64", "base64")], default="hex"
    )
    event_id_header = StringField(
        "Header with the event's id",
        default="webhook-id",
        filters=[trimmed],
        validators=[Length(max=100)],
        description="Looked at first. Empty: none.",
    )
    event_id_path = StringField(
        "JSON path of the event's id",
        default="$.id",
        filters=[trimmed],
        validators=[Length(max=LONGEST_PATH)],
        description="Without an id the body's hash stands for it.",
    )
    event_type_header = StringField(
        "Header with the event's type",
        filters=[trimmed],
        validators=[Length(max=100)],
        description="Looked at first, such as X-GitHub-Event. Empty: none.",
    )
    event_type_path = StringField(
        "JSON path of the event's type",
        default="$.type",
        filters=[trimmed],
        validators=[Length(max=LONGEST_PATH)],
        description="Rules are chosen by it.",
    )

    def wanted(self) -> Wanted:
        """Gives what was filled in."""
        return Wanted(
            scheme=self.scheme.data or "",
            secret=self.secret.data or None,
            signature_header=self.signature_header.data or "",
            signature_prefix=self.signature_prefix.data or "",
            signature_encoding=self.signature_encoding.data or "hex",
            event_id_header=self.event_id_header.data or "",
            event_id_path=self.event_id_path.data or "",
            event_type_header=self.event_type_header.data or "",
            event_type_path=self.event_type_path.data or "",
        )


class NewEndpointForm(EndpointForm):
    """An endpoint that is not there yet."""

    name = StringField(
        "Name",
        filters=[trimmed],
        validators=[DataRequired("Give the endpoint a name, such as shop."), Length(max=63)],
        description=f"It stands in the address and in dedupe keys and can't be changed: {NAME_HINT}.",
    )


class RuleForm(Form):
    """What an event asks for."""

    event_type = StringField(
        "Type of event",
        filters=[trimmed],
        validators=[DataRequired("Name the type of event, or * for those that no other rule is for."), Length(max=200)],
        description="As the endpoint finds it, such as order.paid. * is for those that no other rule is for.",
    )
    message_type = SelectField("Message type", validators=[InputRequired("Choose what is sent.")])
    recipient_path = StringField(
        "Recipient's address",
        filters=[trimmed],
        validators=[DataRequired("Say where the recipient's address stands."), Length(max=LONGEST_PATH)],
        description="A JSON path, such as $.data.customer.email.",
    )
    params = TextAreaField(
        "Parameters",
        validators=[Length(max=LONGEST_LINES)],
        description="What the template uses, one a line: order_id = $.data.order.id",
    )
    dedupe_pattern = StringField(
        "Dedupe key",
        filters=[trimmed],
        validators=[Length(max=500)],
        description="A pattern of parameters and entities, such as receipt:{order_id}, or a JSON path. Empty: the"
        " message type's own pattern, and without one the event's id.",
    )
    entities = TextAreaField(
        "What it is about",
        validators=[Length(max=LONGEST_LINES)],
        description="For finding it again, one a line: order = $.data.order.id. The event's id is always kept.",
    )


class NewRuleForm(RuleForm):
    """A rule that is not there yet."""

    name = StringField(
        "Name",
        filters=[trimmed],
        validators=[DataRequired("Give the rule a name, such as receipt."), Length(max=63)],
        description=f"It stands with each send that the rule makes and can't be changed: {NAME_HINT}.",
    )


class EditRuleForm(RuleForm):
    """A rule that somebody sees at a version."""

    version = HiddenField(validators=[DataRequired("Open the page again: it lacks the rule's version.")])


class TryForm(Form):
    """The event that a rule is tried out on."""

    event_id = IntegerField(
        "Event",
        validators=[
            InputRequired("Fill in an event's number."),
            NumberRange(1, 2**63 - 1, "That is no event's number."),
        ],
        description="The number of a stored event of this endpoint.",
    )


class ConfirmForm(Form):
    """Nothing but the token."""


class VersionForm(Form):
    """The version of a rule that the person saw."""

    version = HiddenField(validators=[DataRequired("Open the page again: it lacks the rule's version.")])


class ReportSecretForm(Form):
    """A new address for a provider's reports, or the secret that they are signed with."""

    make = SubmitField("Make the address")
    secret = PasswordField("Secret", description="Kept encrypted and never shown again.")
