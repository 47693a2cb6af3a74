"""sendonce.send: a role of the database hands messages over in its own transactions, and can do nothing else."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import doorway
import make
import psycopg
import pytest
from doorway import Doorway
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row
from sqlalchemy import Engine

from console.db import transaction
from console.errors import InvalidInput, NotFound
from console.sends import grant_store, grants


@pytest.fixture
def role(server_url: str) -> Iterator[str]:
    """A role of the server that may sign in; gone only after the database, in which it has rights, is gone."""
    name = f"App {uuid.uuid4().hex[:8]} 100%"  # needs quoting, and the driver knows % as the start of a parameter
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'CREATE ROLE "{name}" LOGIN')
    yield name
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f'DROP ROLE "{name}"')


@pytest.fixture
def door(role: str, engine: Engine) -> Doorway:
    """An account that the role may send for."""
    made = doorway.doorway(engine)
    with transaction(engine) as session:
        assert grants.grant(session, made.account_id, role)
    return made


@pytest.fixture
def application(door: Doorway, role: str) -> Iterator[psycopg.Connection[dict[str, Any]]]:
    with psycopg.connect(signed_in(door, role), row_factory=dict_row) as connection:
        yield connection


def signed_in(door: Doorway, role: str) -> str:
    url = door.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    return make_conninfo(url, user=role)


RECEIPT = (
    "SELECT * FROM sendonce.send('Rita@Example.com', 'order_receipt', 'order_receipt:1001',"
    " params => '{\"order_id\": 1001}')"
)


def asked(connection: psycopg.Connection[dict[str, Any]], statement: str = RECEIPT) -> dict[str, Any]:
    row = connection.execute(statement).fetchone()
    assert row is not None
    return row


def refused(connection: psycopg.Connection[dict[str, Any]], statement: str) -> psycopg.Error:
    with pytest.raises(psycopg.Error) as met, connection.transaction():
        connection.execute(statement)
    return met.value


def test_a_message_is_handed_over_in_the_callers_transaction_and_only_then_there(
    door: Doorway, application: psycopg.Connection[dict[str, Any]]
) -> None:
    answer = asked(application)
    assert (answer["status"], answer["is_duplicate"], answer["used_key"]) == ("queued", False, "order_receipt:1001")
    assert door.sends() == []
    application.commit()
    (send,) = door.sends()
    assert (send.id, send.message_id) == (answer["id"], answer["message_id"])
    assert (send.email, send.email_lower) == ("Rita@example.com", "rita@example.com")
    assert send.merge_values == {"order_id": 1001}
    (trigger,) = door.triggers()
    assert (trigger.source, trigger.decision, trigger.send_id) == ("sql", "accepted", send.id)


def test_rolled_back_with_the_order_it_never_was(
    door: Doorway, application: psycopg.Connection[dict[str, Any]]
) -> None:
    asked(application)
    application.rollback()
    assert (door.sends(), door.triggers()) == ([], [])
    assert asked(application)["is_duplicate"] is False


def test_a_repeat_gets_the_first_messages_number_and_both_have_their_triggers(
    door: Doorway, application: psycopg.Connection[dict[str, Any]]
) -> None:
    first = asked(application)
    application.commit()
    again = asked(application)
    application.commit()
    assert (again["id"], again["is_duplicate"]) == (first["id"], True)
    assert [trigger.decision for trigger in door.triggers()] == ["accepted", "duplicate_suppressed"]


def test_sql_and_the_api_meet_at_the_same_key(door: Doorway, application: psycopg.Connection[dict[str, Any]]) -> None:
    first = door.accept(to="rita@EXAMPLE.com")
    assert asked(application)["id"] == first.id
    application.commit()
    door.type(key_pattern="order_receipt:{order_id}")
    by_pattern = asked(
        application,
        "SELECT * FROM sendonce.send('rita@example.com', 'order_receipt', params => '{\"order_id\": 1001}')",
    )
    assert (by_pattern["id"], by_pattern["used_key"]) == (first.id, "order_receipt:1001")


def test_all_that_is_known_about_a_trigger_is_kept(
    door: Doorway, application: psycopg.Connection[dict[str, Any]]
) -> None:
    expires_at = datetime.now(UTC) + timedelta(days=1)
    application.execute(
        """
        SELECT sendonce.send(
            recipient => 'rita@example.com', message_type => 'order_receipt', dedupe_key => 'k:1',
            subject => 'Your {{ order }}', html => '<p>{%% if %%}</p>', body => 'plain', lane => 'urgent',
            send_after => now() + interval '1 hour', expires_after => %s, correlation_id => 'corr', request_id => 'req',
            code_path => 'shop.orders.pay', event => 'order.paid', entities => '{"order_id": "1001"}',
            metadata => '{"shop": "7"}', account => 'acme')
        """,
        (expires_at,),
    )
    application.commit()
    (send,) = door.sends()
    assert (send.lane, send.expires_at, send.correlation_id, send.metadata) == (
        "urgent",
        expires_at,
        "corr",
        {"shop": "7"},
    )
    assert 3500 < (send.due_at - datetime.now(UTC)).total_seconds() <= 3600
    content = door.sql("SELECT * FROM send_contents WHERE id = :id", id=send.content_id)[0]
    assert (content.subject, content.html, content.text) == ("Your {{ order }}", "<p>{% if %}</p>", "plain")
    assert (content.is_rendered, content.sender, content.sender_domain) == (
        True,
        "Shop <shop@example.com>",
        "example.com",
    )
    (trigger,) = door.triggers()
    assert (trigger.correlation_id, trigger.request_id, trigger.code_path) == ("corr", "req", "shop.orders.pay")
    assert (trigger.event, trigger.entities) == ("order.paid", {"order_id": "1001"})


@pytest.mark.parametrize(
    ("arguments", "column"),
    [
        ("'nobody', 'order_receipt', 'k'", "recipient"),
        ("NULL, 'order_receipt', 'k'", "recipient"),
        ("'r@example.com', 'no_such_type', 'k'", "message_type"),
        ("'r@example.com', NULL, 'k'", "message_type"),
        ("'r@example.com', 'campaign', 'k'", "message_type"),
        ("'r@example.com', 'order_receipt', params => '{\"order_id\": 1}'", "dedupe_key"),
        ("'r@example.com', 'order_receipt', ' '", "dedupe_key"),
        ("'r@example.com', 'order_receipt', E'a\\nb'", "dedupe_key"),
        ("'r@example.com', 'order_receipt', repeat('k', 501)", "dedupe_key"),
        ("'r@example.com', 'order_receipt', 'campaign:1:1'", "dedupe_key"),
        ("'r@example.com', 'order_receipt', 'k'", "params"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": \"\\n\"}'", "params"),
        ("'r@example.com', 'order_receipt', 'k', '[]'", "params"),
        ("'r@example.com', 'order_receipt', 'k', jsonb_build_object('order_id', repeat('x', 100001))", "params"),
        ("'r@example.com', 'order_receipt', 'k', template => 'other'", "template"),
        ("'r@example.com', 'order_receipt', 'k', subject => 'x'", "html"),
        ("'r@example.com', 'order_receipt', 'k', html => 'x'", "subject"),
        ("'r@example.com', 'order_receipt', 'k', body => 'x'", "subject"),
        ("'r@example.com', 'order_receipt', 'k', subject => ' ', html => 'x'", "rendered.subject"),
        ("'r@example.com', 'order_receipt', 'k', subject => E'a\\nb', html => 'x'", "rendered.subject"),
        ("'r@example.com', 'order_receipt', 'k', subject => 'x', html => ''", "rendered.html"),
        ("'r@example.com', 'order_receipt', 'k', subject => 'x', html => repeat('x', 500001)", "rendered.html"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', lane => 'fast'", "lane"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', expires_after => now()", "expires_after"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', send_after => 'infinity'", "send_after"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', entities => '[1]'", "entities"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', metadata => '\"x\"'", "metadata"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', event => repeat('x', 201)", "event"),
        ("'r@example.com', 'order_receipt', 'k', '{\"order_id\": 1}', request_id => repeat('x', 201)", "request_id"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_named_and_nothing_is_written(
    door: Doorway, application: psycopg.Connection[dict[str, Any]], arguments: str, column: str
) -> None:
    met = refused(application, f"SELECT sendonce.send({arguments})")
    assert (met.sqlstate, met.diag.column_name) == ("SO001", column), met
    application.commit()
    assert (door.sends(), door.triggers()) == ([], [])


def test_a_key_with_other_content_is_a_unique_violation_that_names_what_differs(
    application: psycopg.Connection[dict[str, Any]],
) -> None:
    asked(application)
    met = refused(application, RECEIPT.replace("1001}", "1002}"))
    assert isinstance(met, psycopg.errors.UniqueViolation)
    assert "params" in (met.diag.message_primary or "")
    assert met.diag.message_hint


def test_a_random_key_is_pointed_out_in_the_session(application: psycopg.Connection[dict[str, Any]]) -> None:
    notices: list[str] = []
    application.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    for _ in range(2):
        asked(application, RECEIPT.replace("order_receipt:1001", str(uuid.uuid4())))
    (notice,) = notices
    assert "looks random" in notice


def test_the_role_can_read_and_write_no_table_and_call_no_other_function(
    door: Doorway, application: psycopg.Connection[dict[str, Any]], role: str
) -> None:
    door.accept(dedupe_key="secret")
    relations = door.sql(
        "SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        " WHERE n.nspname IN ('public', 'sendonce') AND c.relkind IN ('r', 'p', 'v', 'S')"
    )
    assert {"sends", "triggers", "accounts", "suppressions", "api_keys"} <= {each.name for each in relations}
    for each in relations:
        assert isinstance(refused(application, f"SELECT * FROM {each.name}"), psycopg.errors.InsufficientPrivilege)
    for statement in (
        "INSERT INTO sql_grants VALUES (1, current_user)",
        "UPDATE sends SET status = 'queued'",
        "DELETE FROM suppressions",
        "CREATE TABLE public.mine (id int)",
        "CREATE TABLE sendonce.mine (id int)",
    ):
        assert isinstance(refused(application, statement), psycopg.errors.InsufficientPrivilege), statement
    functions = door.sql(
        "SELECT p.oid::regprocedure::text AS name, has_function_privilege(:role, p.oid, 'EXECUTE') AS may"
        "  FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname IN ('public', 'sendonce')",
        role=role,
    )
    assert [each.name.partition("(")[0] for each in functions if each.may] == ["sendonce.send"]
    assert len(functions) >= 4


def test_the_role_reaches_no_other_account(door: Doorway, application: psycopg.Connection[dict[str, Any]]) -> None:
    other = doorway.doorway(door.engine, "other")
    # A neighbour's role, which every server has.
    door.sql("INSERT INTO sql_grants (account_id, role_name) VALUES (:id, 'pg_monitor')", id=other.account_id)
    met = refused(application, RECEIPT.replace("params", "account => 'other', params"))
    assert isinstance(met, psycopg.errors.InsufficientPrivilege)
    assert "other" in (met.diag.message_primary or "")
    other.accept()
    assert asked(application)["is_duplicate"] is False
    application.commit()
    assert {send.account_id for send in door.sends()} == {door.account_id, other.account_id}


def test_a_table_of_the_callers_own_does_not_stand_in_for_ours(
    door: Doorway, application: psycopg.Connection[dict[str, Any]], role: str
) -> None:
    """The function runs with its owner's rights; a temporary table or a search path must not lead it astray."""
    other = doorway.doorway(door.engine, "other")
    application.execute("CREATE TEMP TABLE sql_grants (account_id bigint, role_name text)")
    application.execute("INSERT INTO sql_grants VALUES (%s, %s)", (other.account_id, role))
    application.execute("CREATE TEMP TABLE accounts (id bigint, slug text)")
    application.execute("INSERT INTO accounts VALUES (%s, 'acme')", (other.account_id,))
    application.execute("CREATE TEMP TABLE message_types (LIKE pg_class)")
    application.execute("SET search_path = pg_temp, public")
    asked(application)
    application.commit()
    assert [send.account_id for send in door.sends()] == [door.account_id]


def test_a_role_with_two_accounts_names_one(
    door: Doorway, application: psycopg.Connection[dict[str, Any]], role: str
) -> None:
    other = doorway.doorway(door.engine, "other")
    with transaction(door.engine) as session:
        grants.grant(session, other.account_id, role)
    met = refused(application, RECEIPT)
    assert (met.sqlstate, met.diag.column_name) == ("SO001", "account")
    assert "acme, other" in (met.diag.message_primary or "")
    asked(application, RECEIPT.replace("params", "account => 'other', params"))
    application.commit()
    assert [send.account_id for send in door.sends()] == [other.account_id]


def test_members_of_a_granted_role_may_send_and_others_not(door: Doorway, role: str, server_url: str) -> None:
    name = f"member_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(server_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN")
        try:
            with psycopg.connect(signed_in(door, name), row_factory=dict_row) as connection:
                assert isinstance(refused(connection, RECEIPT), psycopg.errors.InsufficientPrivilege)
                admin.execute(f'GRANT "{role}" TO {name}')
                assert asked(connection)["status"] == "queued"
        finally:
            admin.execute(f"DROP ROLE {name}")


def test_a_revoked_role_is_refused_at_its_next_call(
    door: Doorway, application: psycopg.Connection[dict[str, Any]], role: str
) -> None:
    other = doorway.doorway(door.engine, "other")
    with transaction(door.engine) as session:
        grants.grant(session, other.account_id, role)
        grants.revoke(session, door.account_id, role)
    assert asked(application, RECEIPT)["is_duplicate"] is False
    application.commit()
    assert [send.account_id for send in door.sends()] == [other.account_id]
    with transaction(door.engine) as session:
        grants.revoke(session, other.account_id, role)
        assert grant_store.roles(session, other.account_id) == []
    met = refused(application, RECEIPT)
    assert isinstance(met, psycopg.errors.InsufficientPrivilege)
    with transaction(door.engine) as session, pytest.raises(NotFound, match="nothing to revoke"):
        grants.revoke(session, other.account_id, role)


def test_a_grant_is_on_record_once_and_a_second_one_changes_nothing(door: Doorway, role: str) -> None:
    with transaction(door.engine) as session:
        assert grants.grant(session, door.account_id, role) is False
        assert grant_store.roles(session, door.account_id) == [role]
    entries = door.sql("SELECT action, object_id FROM audit_entries WHERE action LIKE 'sql.%'")
    assert [tuple(entry) for entry in entries] == [("sql.grant", role)]


def test_only_a_role_that_exists_and_is_no_superuser_can_be_granted(engine: Engine) -> None:
    with transaction(engine) as session:
        account_id = make.account(session)
        with pytest.raises(NotFound, match="CREATE ROLE nobody_here"):
            grants.grant(session, account_id, "nobody_here")
        superuser = engine.url.username
        assert superuser is not None
        with pytest.raises(InvalidInput, match="superuser") as refused_:
            grants.grant(session, account_id, superuser)
    assert refused_.value.field == "role"


def test_who_was_granted_nothing_is_told_what_to_ask_for(door: Doorway) -> None:
    door.sql("DELETE FROM sql_grants")
    url = door.engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, row_factory=dict_row) as connection:
        met = refused(connection, RECEIPT)
    assert isinstance(met, psycopg.errors.InsufficientPrivilege)
    assert "sendonce db grant" in (met.diag.message_hint or "")
