"""Tables of workers, ticks and the state of providers, which are the installation's; and of what is being settled."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, SmallInteger, func, text
from sqlalchemy.orm import Mapped, mapped_column

from console.db import IDENTITY, Base


class Worker(Base):
    """One sending thread of a process, from its start to its end; a new row at every start."""

    __tablename__ = "workers"
    __table_args__ = (
        CheckConstraint("status IN ('alive','stopped','dead')", name="status"),
        Index(None, "heartbeat_at", postgresql_where=text("status = 'alive'")),
        {"comment": "Sending threads of all processes, one row a start."},
    )

    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The worker's identity, new at every start.")
    host: Mapped[str] = mapped_column(comment="The machine's name.")
    pid: Mapped[int] = mapped_column(comment="The process id there.")
    status: Mapped[str] = mapped_column(server_default=text("'alive'"), comment="alive, stopped or dead.")
    started_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it registered.")
    heartbeat_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="Its last sign of life.")
    ended_at: Mapped[datetime | None] = mapped_column(comment="When it stopped or was declared dead.")
    provider: Mapped[str | None] = mapped_column(comment="The provider that it sends by, by its name in our registry.")
    may_settle: Mapped[bool] = mapped_column(
        server_default=text("false"),
        comment="Whether a message that its provider did not answer can be settled without a person.",
    )


class Tick(Base):
    """When each tick of the scheduler last ran, anywhere."""

    __tablename__ = "ticks"
    __table_args__ = ({"comment": "When each tick of the scheduler last ran, on any process."},)

    name: Mapped[str] = mapped_column(primary_key=True, comment="The tick's name (scheduler.py).")
    ran_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When it last ended well.")
    failed_at: Mapped[datetime | None] = mapped_column(comment="When it last failed.")
    error: Mapped[str | None] = mapped_column(comment="What it failed with.")


class ProviderState(Base):
    """What all workers know together about a provider: its breaker and its pace."""

    __tablename__ = "provider_states"
    __table_args__ = (
        CheckConstraint("breaker IN ('closed','open')", name="breaker"),
        {"comment": "What all workers know together about a provider: breaker and pace."},
    )

    name: Mapped[str] = mapped_column(primary_key=True, comment="The provider's name in our registry.")
    breaker: Mapped[str] = mapped_column(
        server_default=text("'closed'"), comment="closed: goes on; open: no claims before next_try_at."
    )
    failure_count: Mapped[int] = mapped_column(server_default=text("0"), comment="Failures to connect in a row.")
    error: Mapped[str | None] = mapped_column(comment="The last connection error, in words.")
    error_at: Mapped[datetime | None] = mapped_column(comment="When that was.")
    next_try_at: Mapped[datetime | None] = mapped_column(comment="When one worker may try again.")
    pace_next_at: Mapped[datetime] = mapped_column(
        server_default=func.now(), comment="The first moment that no message has been promised to (MAX_RATE)."
    )


class Doubt(Base):
    """A message in doubt whose provider can be asked, or makes no second message of one with the same key."""

    __tablename__ = "doubts"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "send_id"], ["sends.account_id", "sends.id"]),
        Index("doubts_due_idx", "account_id", "due_at", postgresql_where=text("due_at IS NOT NULL")),
        {"comment": "Messages in doubt that are settled without a person, as their providers allow, and when."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    send_id: Mapped[int] = mapped_column(primary_key=True, comment="The send.")
    attempt_no: Mapped[int] = mapped_column(SmallInteger, comment="The attempt that it is about, the send's last.")
    provider: Mapped[str] = mapped_column(comment="The provider's name in our registry.")
    first_at: Mapped[datetime] = mapped_column(comment="When that provider first did not answer about the message.")
    due_at: Mapped[datetime | None] = mapped_column(
        comment="When the next step is due; while one is under way, when another process may take it over."
        " Empty: there is none, a report or a person settles it."
    )
    look_up_count: Mapped[int] = mapped_column(server_default=text("0"), comment="Look-ups since that attempt.")
    was_absent: Mapped[bool] = mapped_column(
        server_default=text("false"), comment="Whether the last look-up said that the message is not there."
    )


class LookUp(Base):
    """One question to a provider whether it has a message, and the answer."""

    __tablename__ = "look_ups"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "send_id"], ["sends.account_id", "sends.id"]),
        CheckConstraint("answer IN ('found','absent','unknown')", name="answer"),
        Index(None, "account_id", "send_id"),
        {"comment": "What providers were asked about messages in doubt, and what they answered."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    id: Mapped[int] = mapped_column(IDENTITY, primary_key=True, comment="The look-up's number.")
    at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When the answer came.")
    send_id: Mapped[int] = mapped_column(comment="The send.")
    attempt_no: Mapped[int] = mapped_column(SmallInteger, comment="The attempt that got no answer.")
    provider: Mapped[str] = mapped_column(comment="The provider that was asked, by its name in our registry.")
    asked: Mapped[str] = mapped_column(comment="Our name for the message, by which it was asked for.")
    answer: Mapped[str] = mapped_column(comment="found, absent, or unknown: it could not be asked or said nothing.")
    words: Mapped[str] = mapped_column(comment="The provider's words, or why there are none.")
    provider_id: Mapped[str | None] = mapped_column(comment="The provider's own id for the message, when found.")
