"""SQL of the keys' allowances: a token bucket for each key, in one row that all processes share."""

from dataclasses import dataclass

from sqlalchemy import Connection, text


@dataclass(frozen=True, slots=True)
class Bucket:
    """How a key's calls come back: `per_s` each second, never more than `most` at once."""

    most: float
    per_s: float


_LEFT = "LEAST(:most, a.calls + :per_s * EXTRACT(epoch FROM clock_timestamp() - a.filled_at))"
_TAKE = text(
    f"""
    INSERT INTO api_allowances AS a (account_id, key_id, calls, filled_at)
    VALUES (:account_id, :key_id, :most - :wanted, clock_timestamp())
        ON CONFLICT (account_id, key_id) DO UPDATE
       SET calls = {_LEFT} - :wanted, filled_at = clock_timestamp()
     WHERE {_LEFT} >= 1
    RETURNING calls
    """
)
_WAIT = text(
    f"SELECT (1 - {_LEFT}) / :per_s FROM api_allowances a WHERE a.account_id = :account_id AND a.key_id = :key_id"
)


def take(connection: Connection, account_id: int, *, key_id: int, bucket: Bucket, wanted: int) -> float | None:
    """Takes `wanted` calls out of the bucket when at least one is in it; it may be left with less than none.

    Gives: None when they were taken, else the seconds until a call is in it again.
    """
    values = {
        "account_id": account_id,
        "key_id": key_id,
        "most": bucket.most,
        "per_s": bucket.per_s,
        "wanted": float(wanted),
    }
    if connection.execute(_TAKE, values).one_or_none() is not None:
        return None
    return max(0.0, connection.execute(_WAIT, values).scalar_one())
