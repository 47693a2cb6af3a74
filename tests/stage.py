"""A campaign's stage without a browser: an account with an author and an approver, a list, and the ways to move on."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import make
from sqlalchemy import Engine, text

from console import config
from console.campaigns import service, store, ticks
from console.campaigns.store import CampaignRow
from console.config import Settings
from console.db import transaction

SETTINGS = config.load({"SENDONCE_SECRET_KEY": "test-key-" + "k" * 32})


@dataclass(frozen=True)
class Stage:
    """Everything that a campaign needs; `settings` are the ticks'."""

    engine: Engine
    account_id: int
    author_id: int
    approver_id: int
    list_id: int
    settings: Settings

    def draft(self, **changes: Any) -> service.Draft:
        plain = service.Draft(
            name="Spring news",
            list_id=self.list_id,
            subject="News for {{ first_name }}",
            sender="Acme <news@example.com>",
            html="<p>Hello {{ first_name }}</p>",
        )
        return replace(plain, **changes)

    def create(self, **changes: Any) -> int:
        with transaction(self.engine) as session:
            return service.create(session, self.account_id, author_id=self.author_id, draft=self.draft(**changes))

    def do(self, change: str, campaign_id: int, *, user_id: int | None = None, **options: Any) -> Any:
        """Makes a change as the one who usually makes it."""
        usual = self.approver_id if change in ("approve", "reject") else self.author_id
        if change == "edit":
            options = {"author_id": user_id or usual, "draft": self.draft(), **options}
        else:
            options["user_id"] = user_id or usual
            if change == "reject":
                options.setdefault("reason", "Too loud.")
        with transaction(self.engine) as session:
            return getattr(service, change)(session, self.account_id, campaign_id, **options)

    def approved(self, *, scheduled_for: datetime | None = None, **changes: Any) -> int:
        """The id of a campaign that is approved."""
        campaign_id = self.create(**changes)
        self.do("submit", campaign_id)
        self.do("approve", campaign_id, scheduled_for=scheduled_for)
        return campaign_id

    def started(self, **changes: Any) -> int:
        """The id of a campaign that is sending, its audience not built."""
        campaign_id = self.approved(**changes)
        assert ticks.start_due(self.engine, self.settings) == 1
        return campaign_id

    def built(self, **changes: Any) -> int:
        """The id of a campaign that is sending, its audience complete."""
        campaign_id = self.started(**changes)
        while ticks.build_audiences(self.engine, self.settings):
            pass
        return campaign_id

    def at(self, status: str) -> int:
        """The id of a campaign in this state, brought there by the ways that there are."""
        if status in ("draft", "submitted", "cancelled"):
            campaign_id = self.create()
            steps = {"draft": (), "submitted": ("submit",), "cancelled": ("cancel",)}[status]
        else:
            campaign_id = self.approved() if status == "approved" else self.built()
            steps = ("pause",) if status == "paused" else ()
        for step in steps:
            self.do(step, campaign_id)
        if status == "sent":
            self.sql("UPDATE campaigns SET status = 'sent', finished_at = now() WHERE id = :id", id=campaign_id)
        return campaign_id

    def row(self, campaign_id: int) -> CampaignRow:
        """The campaign as it stands in the database."""
        with transaction(self.engine) as session:
            return store.show(session, self.account_id, campaign_id)

    def sql(self, statement: str, **values: Any) -> list[Any]:
        """Runs a statement of the test's own; gives its rows, if it has any."""
        with transaction(self.engine) as session:
            result = session.execute(text(statement), values)
            return list(result) if result.returns_rows else []  # type: ignore[attr-defined]


def stage(
    engine: Engine, *, emails: tuple[str, ...] = ("rita@example.com", "rob@example.com"), **settings: Any
) -> Stage:
    """An account with people and one list; `settings` are changes by their field names."""
    with transaction(engine) as session:
        account_id = make.account(session)
        author_id = make.user(session, account_id, email="mia@example.com", roles=("marketer",))
        approver_id = make.user(session, account_id, email="abe@example.com", roles=("approver",))
        list_id = make.mailing_list(session, account_id, emails=emails)
    return Stage(engine, account_id, author_id, approver_id, list_id, replace(SETTINGS, **settings))


def fill(stage: Stage, count: int, *, shared_every: int = 0) -> None:
    """Puts `count` more confirmed subscribers on the list; every n-th shares its address with the one before."""
    stage.sql(
        """
        WITH made AS (
            INSERT INTO subscribers (account_id, email, email_lower, external_id, attributes)
            SELECT :account_id, a, a, i::text, jsonb_build_object('first_name', 'Name ' || i, 'secret', 'kept')
              FROM generate_series(1, :count) AS i
             CROSS JOIN LATERAL (SELECT 'p' || i - CASE WHEN :every > 0 AND i % NULLIF(:every, 0) = 0 THEN 1 ELSE 0 END
                                     || '@example.com') AS t (a)
            RETURNING account_id, id
        )
        INSERT INTO list_members (account_id, list_id, subscriber_id) SELECT account_id, :list_id, id FROM made
        """,
        account_id=stage.account_id,
        list_id=stage.list_id,
        count=count,
        every=shared_every,
    )
