"""How often a key may call: one bucket for all processes, in the database."""

import time
from concurrent.futures import ThreadPoolExecutor

import programs
import visit
from sqlalchemy import Engine, text

from console.accounts.key_store import KeyHolder
from console.api.allowance import Allowances


def _holder(engine: Engine, *, calls_per_minute: int) -> KeyHolder:
    office = visit.office(engine)
    key = programs.program(engine, office.app, office.account_id, calls_per_minute=calls_per_minute).key
    return KeyHolder(office.account_id, int(key.split("_")[1]), frozenset({"send"}), calls_per_minute)


def _granted(allowances: Allowances, holder: KeyHolder, *, tries: int) -> int:
    return sum(allowances.spend(holder) is None for _ in range(tries))


def test_a_key_spends_its_burst_and_is_then_told_when_a_call_is_free(engine: Engine) -> None:
    holder = _holder(engine, calls_per_minute=60)
    allowances = Allowances(engine)
    assert _granted(allowances, holder, tries=30) in {10, 11}
    assert allowances.spend(holder) == 1
    time.sleep(1.1)
    assert allowances.spend(holder) is None


def test_processes_share_one_bucket(engine: Engine) -> None:
    holder = _holder(engine, calls_per_minute=600)
    began = time.monotonic()
    with ThreadPoolExecutor(4) as pool:
        granted = sum(pool.map(lambda one: _granted(one, holder, tries=60), [Allowances(engine) for _ in range(4)]))
    earned = 10 * (time.monotonic() - began)
    # Each of the four may hold an advance of 5 that it did not come to spend; the last advance may be a debt.
    assert 100 - 20 <= granted <= 100 + earned + 6


def test_a_large_batch_is_served_and_paid_for_afterwards(engine: Engine) -> None:
    holder = _holder(engine, calls_per_minute=600)
    allowances = Allowances(engine)
    assert allowances.spend(holder, calls=500) is None
    assert _granted(allowances, holder, tries=10) == 5  # the advance
    wait_s = allowances.spend(holder)
    assert wait_s is not None
    assert 30 <= wait_s <= 42


def test_an_allowance_does_not_grow_over_its_burst(engine: Engine) -> None:
    holder = _holder(engine, calls_per_minute=60)
    allowances = Allowances(engine)
    allowances.spend(holder)
    with engine.begin() as connection:
        connection.execute(text("UPDATE api_allowances SET filled_at = now() - interval '1 day'"))
    assert _granted(allowances, holder, tries=30) in {10, 11}


def test_most_calls_ask_the_database_nothing(engine: Engine) -> None:
    holder = _holder(engine, calls_per_minute=60_000)
    allowances = Allowances(engine)
    allowances.spend(holder)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE api_allowances"))
    assert _granted(allowances, holder, tries=400) == 400


def test_a_call_over_the_limit_is_429_with_the_seconds_to_wait(engine: Engine) -> None:
    office = visit.office(engine)
    one = programs.program(engine, office.app, office.account_id, calls_per_minute=6)
    other = programs.program(engine, office.app, office.account_id, calls_per_minute=6)
    assert one.get("/campaigns").status_code == 200
    refused = one.get("/campaigns")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 10
    assert "6 calls a minute" in refused.get_json()["detail"]
    assert other.get("/campaigns").status_code == 200
