"""Tables of workers, ticks and the state of providers: they belong to the installation, not to an account."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, func, text
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
