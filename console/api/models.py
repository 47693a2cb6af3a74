"""The table of how many calls each API key may still make. The keys themselves are in accounts/models.py."""

from datetime import datetime

from sqlalchemy import Double, ForeignKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from console.db import Base


class ApiAllowance(Base):
    """What is left of a key's calls. Unlogged: after a crash of the database every key has its full allowance."""

    __tablename__ = "api_allowances"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "key_id"], ["api_keys.account_id", "api_keys.id"]),
        {
            "comment": "How many calls each API key may still make now; shared by all processes.",
            "prefixes": ["UNLOGGED"],
        },
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    key_id: Mapped[int] = mapped_column(primary_key=True, comment="The key.")
    calls: Mapped[float] = mapped_column(
        Double, comment="Calls that were left at filled_at; it grows with time, and is below zero after a large batch."
    )
    filled_at: Mapped[datetime] = mapped_column(comment="When calls was true.")
