"""SQL of the import: the file's rows in a temporary table, then the account's subscribers, chunk by chunk.

The temporary table belongs to one connection; nothing of it is logged, locked or seen by others.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg import Copy
from sqlalchemy import text
from sqlalchemy.orm import Session

from console.audience.csv_rows import Person


@dataclass(frozen=True, slots=True)
class Applied:
    """What one chunk did; `suppressed_count` of its people are kept from getting mail by an older opt-out."""

    added_count: int
    updated_count: int
    unchanged_count: int
    joined_count: int
    suppressed_count: int


def make_stage(session: Session) -> None:
    """Makes the empty temporary table."""
    session.execute(
        text(
            'CREATE TEMPORARY TABLE import_rows (line bigint, email text, email_lower text COLLATE "C",'
            ' external_id text COLLATE "C", status text, attributes jsonb)'
        )
    )


@contextmanager
def staging(session: Session) -> Iterator[Copy]:
    """Gives the COPY that rows are written to with write_person()."""
    connection = session.connection().connection.driver_connection
    assert connection is not None
    with connection.cursor() as cursor, cursor.copy("COPY import_rows FROM STDIN") as copy:
        yield copy


def write_person(copy: Copy, person: Person) -> None:
    """Adds a row to the stage."""
    attributes = json.dumps(person.attributes, ensure_ascii=False)
    copy.write_row((person.line, person.email, person.email_lower, person.external_id, person.status, attributes))


def number_stage(session: Session) -> int:
    """Keeps the last row of each person and numbers them, from 1, in the order that all imports lock them in.

    Gives: how many people there are.
    """
    session.execute(
        text(
            "CREATE TEMPORARY TABLE import_people AS"
            " SELECT row_number() OVER (ORDER BY email_lower, external_id) AS place, p.* FROM ("
            "   SELECT DISTINCT ON (email_lower, external_id) email, email_lower, external_id, status, attributes"
            "     FROM import_rows ORDER BY email_lower, external_id, line DESC) p"
        )
    )
    session.execute(text("DROP TABLE import_rows"))
    session.execute(text("CREATE UNIQUE INDEX ON import_people (place)"))
    session.execute(text("ANALYZE import_people"))
    return session.execute(text("SELECT count(*) FROM import_people")).scalar_one()


def drop_stage(session: Session) -> None:
    """Removes the temporary tables, whichever there are."""
    session.execute(text("DROP TABLE IF EXISTS import_rows, import_people"))


_INSERT = """
INSERT INTO subscribers (account_id, email, email_lower, external_id, status, attributes)
SELECT :account_id, p.email, p.email_lower, p.external_id, COALESCE(p.status, 'confirmed'), p.attributes
  FROM import_people p WHERE p.place > :after AND p.place <= :upto
 ORDER BY p.place
    ON CONFLICT DO NOTHING
"""
# In the order of all imports, so that two at once wait for each other instead of locking each other out.
_LOCK = """
SELECT count(*) FROM (
    SELECT FROM import_people p
      JOIN subscribers s ON s.account_id = :account_id AND s.email_lower = p.email_lower
                        AND s.external_id = p.external_id
     WHERE p.place > :after AND p.place <= :upto
     ORDER BY p.place
       FOR NO KEY UPDATE OF s) locked
"""
_UPDATE = """
UPDATE subscribers s
   SET email = p.email, status = COALESCE(p.status, s.status), attributes = s.attributes || p.attributes,
       updated_at = now()
  FROM import_people p
 WHERE p.place > :after AND p.place <= :upto
   AND s.account_id = :account_id AND s.email_lower = p.email_lower AND s.external_id = p.external_id
   AND (s.email <> p.email OR s.status <> COALESCE(p.status, s.status)
        OR s.attributes <> s.attributes || p.attributes)
"""
_JOIN = """
INSERT INTO list_members (account_id, list_id, subscriber_id)
SELECT :account_id, :list_id, s.id
  FROM import_people p
  JOIN subscribers s ON s.account_id = :account_id AND s.email_lower = p.email_lower
                    AND s.external_id = p.external_id
 WHERE p.place > :after AND p.place <= :upto
 ORDER BY s.id
    ON CONFLICT DO NOTHING
"""
_SUPPRESSED = """
SELECT count(*) FROM import_people p
 WHERE p.place > :after AND p.place <= :upto
   AND EXISTS (SELECT FROM suppressions x
                WHERE x.account_id = :account_id AND x.email_lower = p.email_lower
                  AND (x.list_id IS NULL OR x.list_id = :list_id))
"""


def apply_chunk(session: Session, account_id: int, *, list_id: int, after: int, upto: int) -> Applied:
    """Brings the people at places after < place <= upto into the account and onto the list.

    Attributes that the file does not have stay; suppressions are never touched.
    """
    place = {"account_id": account_id, "after": after, "upto": upto}
    added_count = _row_count(session, _INSERT, place)
    known_count = session.execute(text(_LOCK), place).scalar_one()
    # A statement of its own: it sees what other imports have committed while this one waited for their locks.
    updated_count = _row_count(session, _UPDATE, place)
    joined_count = _row_count(session, _JOIN, {**place, "list_id": list_id})
    suppressed_count = session.execute(text(_SUPPRESSED), {**place, "list_id": list_id}).scalar_one()
    return Applied(
        added_count=added_count,
        updated_count=updated_count,
        unchanged_count=known_count - added_count - updated_count,
        joined_count=joined_count,
        suppressed_count=suppressed_count,
    )


def _row_count(session: Session, statement: str, values: dict[str, int]) -> int:
    return session.connection().execute(text(statement), values).rowcount
