"""Tables of what people did with dead letters and with messages in doubt."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, SmallInteger, func, text
from sqlalchemy.orm import Mapped, mapped_column

from console.db import IDENTITY, Base


class FrozenSet(Base):
    """Sends that a person was shown, to be moved on as they stood then, once."""

    __tablename__ = "frozen_sets"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "shown_to"], ["users.account_id", "users.id"], name="frozen_sets_shown_fk"),
        ForeignKeyConstraint(["account_id", "run_by"], ["users.account_id", "users.id"], name="frozen_sets_run_fk"),
        CheckConstraint("change IN ('revive','settle_sent','settle_resend','settle_failed')", name="change"),
        CheckConstraint("status IN ('shown','run')", name="status"),
        CheckConstraint(
            "status = 'shown' OR (run_by IS NOT NULL AND ran_at IS NOT NULL AND reason IS NOT NULL)", name="run"
        ),
        {"comment": "What people did with dead letters and messages in doubt: over which rows, who, when and why."},
    )

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The set's number.")
    change: Mapped[str] = mapped_column(
        comment="revive, settle_sent, settle_resend or settle_failed (sends/states.py)."
    )
    status: Mapped[str] = mapped_column(
        server_default=text("'shown'"), comment="shown: nothing has happened yet; run: it can't be run again."
    )
    row_count: Mapped[int] = mapped_column(server_default=text("0"), comment="Sends in the set.")
    has_more: Mapped[bool] = mapped_column(
        server_default=text("false"), comment="Whether more sends fitted than one set holds."
    )
    shown_to: Mapped[int] = mapped_column(comment="Who was shown the set.")
    shown_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it was frozen.")
    run_by: Mapped[int | None] = mapped_column(comment="Who had it run.")
    ran_at: Mapped[datetime | None] = mapped_column(comment="When it was run.")
    reason: Mapped[str | None] = mapped_column(comment="Why, in that person's words.")
    moved_count: Mapped[int | None] = mapped_column(comment="Sends that moved; the others had changed meanwhile.")


class FrozenRow(Base):
    """One send of a frozen set, as it stood when it was shown."""

    __tablename__ = "frozen_rows"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "set_id"], ["frozen_sets.account_id", "frozen_sets.id"]),
        ForeignKeyConstraint(["account_id", "send_id"], ["sends.account_id", "sends.id"]),
        CheckConstraint("outcome IN ('moved','skipped')", name="outcome"),
        # All that people decided about one send.
        Index(None, "account_id", "send_id"),
        {"comment": "The sends of each frozen set, as they stood when they were shown, and what became of them."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    set_id: Mapped[int] = mapped_column(primary_key=True, comment="The set.")
    send_id: Mapped[int] = mapped_column(primary_key=True, comment="The send.")
    attempt_no: Mapped[int] = mapped_column(SmallInteger, comment="Its attempts when it was shown.")
    claimed_at: Mapped[datetime | None] = mapped_column(comment="Its last claim when it was shown; another: changed.")
    outcome: Mapped[str | None] = mapped_column(comment="moved or skipped; empty until the set is run.")
    skip_reason: Mapped[str | None] = mapped_column(comment="Why it was skipped, in words.")
