"""What a run needs before it can begin: an account with people, and a campaign written by one, approved by another."""

import secrets
from dataclasses import dataclass

from sqlalchemy.orm import Session

from console.accounts import service as accounts
from console.campaigns import service as campaigns
from console.campaigns.service import Draft


@dataclass(frozen=True)
class SignIn:
    """A person with the password that they sign in with."""

    user_id: int
    name: str
    email: str
    role: str
    password: str


CAST = (
    ("Mia Marin", "marketer"),
    ("Paul Okafor", "approver"),
    ("Sara Lind", "support"),
    ("Omar Haddad", "operator"),
    ("Ada Novak", "admin"),
)
PAPER = Draft(
    name="Drill",
    list_id=0,
    subject="{{ first_name }}, this is a drill",
    sender="Drill <drill@example.com>",
    html='<p>Hello {{ first_name }}, nothing to do.</p><p><a href="{{ unsubscribe_url }}">Leave this list</a></p>',
    text="Hello {{ first_name }}, nothing to do.\nLeave this list: {{ unsubscribe_url }}\n",
)


def make_account(session: Session, slug: str, *, name: str, roles: tuple[str, ...]) -> tuple[int, dict[str, SignIn]]:
    """Makes an account with one person for each role; gives its id and the people by role.

    Raises: Conflict when the slug is taken.
    """
    account = accounts.add_account(session, slug, name=name)
    people = {}
    for person, role in CAST:
        if role not in roles:
            continue
        email = f"{person.partition(' ')[0].lower()}@{slug}.example.com"
        password = secrets.token_urlsafe(9)
        user = accounts.add_user(session, account.id, email=email, name=person, roles=(role,), password=password)
        people[role] = SignIn(user.id, person, email, role, password)
    return account.id, people


def approved_campaign(session: Session, account_id: int, *, draft: Draft, people: dict[str, SignIn]) -> int:
    """Writes, submits and approves a campaign, each by whose role it is; gives its id. It may start at once."""
    author_id, approver_id = people["marketer"].user_id, people["approver"].user_id
    campaign_id = campaigns.create(session, account_id, author_id=author_id, draft=draft)
    campaigns.submit(session, account_id, campaign_id, user_id=author_id)
    campaigns.approve(session, account_id, campaign_id, user_id=approver_id)
    return campaign_id
