"""Tables of templates: what messages of a type are made from, version by version."""

from datetime import datetime

from sqlalchemy import ForeignKey, ForeignKeyConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from console.db import Base


class Template(Base):
    """A name that message types use; its newest version is in force."""

    __tablename__ = "templates"
    __table_args__ = ({"comment": "Templates by name; message types use their newest version."},)

    account_id: Mapped[int] = mapped_column(ForeignKey("accounts.id"), primary_key=True, comment="The owner.")
    name: Mapped[str] = mapped_column(primary_key=True, comment="The template's name.")
    version: Mapped[int] = mapped_column(comment="Its newest version.")
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When that was made.")


class TemplateVersion(Base):
    """A template as somebody wrote it; never changed."""

    __tablename__ = "template_versions"
    __table_args__ = (
        ForeignKeyConstraint(["account_id", "name"], ["templates.account_id", "templates.name"]),
        ForeignKeyConstraint(["account_id", "author_id"], ["users.account_id", "users.id"]),
        {"comment": "Templates as they were written; a version is never changed."},
    )

    account_id: Mapped[int] = mapped_column(primary_key=True, comment="The owner.")
    name: Mapped[str] = mapped_column(primary_key=True, comment="The template.")
    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False, comment="From 1.")
    subject: Mapped[str] = mapped_column(comment="The subject, with merge fields.")
    html: Mapped[str] = mapped_column(comment="The HTML part, with merge fields.")
    text: Mapped[str] = mapped_column(comment="The text part; empty: made from the HTML part.")
    author_id: Mapped[int | None] = mapped_column(comment="Who wrote it; empty: the command line.")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now(), comment="When.")
