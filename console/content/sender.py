"""The From field as its author wrote it: one mailbox, whose name may hold merge fields and whose address may not."""

from dataclasses import dataclass
from email import policy
from email.errors import InvalidHeaderDefect, MessageError, NonASCIILocalPartDefect

from email_validator import EmailNotValidError, validate_email

from console.content.header import trouble_in
from console.errors import InvalidInput

_FORM = "Write one address, or Name <address>; put a name with a comma in double quotes."


@dataclass(frozen=True)
class Sender:
    """`name` may hold merge fields. `address` goes into From, `mail_from` into the envelope."""

    name: str
    address: str
    needs_smtputf8: bool

    @property
    def mail_from(self) -> str:
        """The reverse path of the envelope."""
        return self.address


def parse_sender(text: str) -> Sender:
    """Gives the sender that a From field names.

    A merge field is only taken in the name: an address from a recipient's values could be anybody's.
    Raises: InvalidInput(field="sender") for none or several addresses, line breaks, or a wrong address.
    """
    trouble = trouble_in(text)
    if trouble:
        raise InvalidInput(f"The sender holds a {trouble}. {_FORM}", field="sender")
    name, address = _split_template(text) if "{" in text else _split_plain(text)
    if "{" in address:
        raise InvalidInput("The sender's address can't hold a merge field, only the name can.", field="sender")
    try:
        checked = validate_email(address, check_deliverability=False)
    except EmailNotValidError as error:
        raise InvalidInput(f"The sender's address {address!r} is wrong: {error} {_FORM}", field="sender") from None
    domain = checked.ascii_domain
    return Sender(name, f"{checked.local_part}@{domain}", not checked.local_part.isascii())


def _split_template(text: str) -> tuple[str, str]:
    name, bracket, rest = text.strip().rpartition("<")
    if not bracket:
        return "", rest
    if not rest.endswith(">"):
        raise InvalidInput(f"The sender {text!r} can't be read. {_FORM}", field="sender")
    name = name.strip()
    if len(name) > 1 and name[0] == name[-1] == '"':
        name = name[1:-1]
    return name, rest[:-1].strip()


def _split_plain(text: str) -> tuple[str, str]:
    try:
        parsed = policy.default.header_factory("from", text)
    except (MessageError, ValueError, IndexError):
        raise InvalidInput(f"The sender {text!r} can't be read. {_FORM}", field="sender") from None
    if len(parsed.addresses) != 1 or parsed.groups[0].display_name is not None:
        raise InvalidInput(f"The sender {text!r} holds {len(parsed.addresses)} addresses. {_FORM}", field="sender")
    for defect in parsed.defects:
        if isinstance(defect, InvalidHeaderDefect) and not isinstance(defect, NonASCIILocalPartDefect):
            raise InvalidInput(f"The sender {text!r} can't be read: {defect}. {_FORM}", field="sender")
    found = parsed.addresses[0]
    return found.display_name, found.addr_spec
