"""The README's examples of mail from SQL: taken from it as they stand, and run by an application's role."""

import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import make
import psycopg
import pytest
from doorway import Doorway
from psycopg.conninfo import make_conninfo
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from console.db import transaction

README = Path(__file__).parents[2] / "README.md"


def examples() -> dict[str, list[str]]:
    """The code of the section From SQL, by language."""
    section = README.read_text(encoding="utf-8").partition("### From SQL\n")[2]
    section = re.split(r"(?m)^##+ ", section)[0]
    found: dict[str, list[str]] = {}
    for language, code in re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL):
        found.setdefault(language, []).append(code)
    return found


@pytest.fixture
def role(server_url: str) -> Iterator[str]:
    """The application's role; the README calls it shop."""
    name = f"shop_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")
    yield name
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"DROP ROLE {name}")


@pytest.fixture
def door(role: str, engine: Engine, database_url: str, tmp_path: Path) -> Doorway:
    """An account set up by the section's commands, and a table of the application's own."""
    with transaction(engine) as session:
        made = Doorway(engine, make.account(session))
    made.sql("CREATE TABLE orders (id bigint PRIMARY KEY, paid_at timestamptz)")
    made.sql("INSERT INTO orders VALUES (1001), (1002)")
    made.sql(f"GRANT SELECT, UPDATE ON orders TO {role}")
    (tmp_path / "receipt.html").write_text("<p>{{ order_id }}: {{ total }}</p>", encoding="utf-8")
    (commands,) = examples()["sh"]
    program = Path(sys.executable).with_name("sendonce")
    commands = commands.replace("grant shop", f"grant {role}")
    environment = {
        "SENDONCE_DATABASE_URL": database_url,
        "SENDONCE_SECRET_KEY": "k" * 32,
        "PYTHONPATH": str(README.parent),
    }
    subprocess.run(
        ["bash", "-euc", f'sendonce() {{ "{program}" "$@"; }}\n{commands}'],
        cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    return made


@pytest.fixture
def signed_in(door: Doorway, role: str, database_url: str) -> str:
    return make_conninfo(database_url, user=role)


def pay(code: str) -> Any:
    """The function that the example defines."""
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    return names["pay"]


def paid(door: Doorway) -> list[int]:
    return [row.id for row in door.sql("SELECT id FROM orders WHERE paid_at IS NOT NULL ORDER BY id")]


def test_the_plain_statements_pay_and_send_in_one_transaction(door: Doorway, signed_in: str) -> None:
    (statements,) = examples()["sql"]
    with psycopg.connect(signed_in, autocommit=True) as connection:
        connection.execute(statements.replace("COMMIT;", "ROLLBACK;"))
        assert (paid(door), door.sends(), door.triggers()) == ([], [], [])
        connection.execute(statements)
    (send,) = door.sends()
    assert (paid(door), send.dedupe_key, send.status) == ([1001], "receipt:1001", "queued")
    (trigger,) = door.triggers()
    assert (trigger.source, trigger.event, trigger.code_path) == ("sql", "order.paid", "shop.orders.pay")
    assert trigger.entities == {"order_id": 1001}


def test_the_example_with_psycopg_sends_once_for_each_order(door: Doorway, signed_in: str) -> None:
    pay_order = pay(examples()["python"][0])
    with psycopg.connect(signed_in) as connection:
        first = pay_order(connection, 1001, "rita@example.com")
        assert pay_order(connection, 1001, "rita@example.com") == first
        assert pay_order(connection, 1002, "rita@example.com") != first
    assert (paid(door), len(door.sends()), len(door.triggers())) == ([1001, 1002], 2, 3)


def test_the_example_with_sqlalchemy_sends_the_same_messages(door: Doorway, signed_in: str, role: str) -> None:
    with psycopg.connect(signed_in) as connection:
        first = pay(examples()["python"][0])(connection, 1001, "rita@example.com")
    engine = create_engine(door.engine.url.set(username=role))
    with Session(engine) as session:
        assert pay(examples()["python"][1])(session, 1001, "rita@example.com") == first
        assert pay(examples()["python"][1])(session, 1002, "rita@example.com") != first
    engine.dispose()
    assert (paid(door), len(door.sends())) == ([1001, 1002], 2)


def test_the_table_of_arguments_names_each_argument_and_no_other(engine: Engine) -> None:
    section = README.read_text(encoding="utf-8").partition("### From SQL\n")[2]
    table = section.partition("| argument |")[2].partition("\n\n")[0]
    named = {name for line in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    with engine.connect() as connection:
        arguments = connection.exec_driver_sql(
            "SELECT proargnames[:pronargs] FROM pg_proc WHERE oid = 'sendonce.send'::regproc"
        ).scalar_one()
    assert named == set(arguments)
