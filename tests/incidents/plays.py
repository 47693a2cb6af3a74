"""Incidents, each made by really running the system: its cause, what the mail server does, and what happens."""

import time
from dataclasses import dataclass, field
from typing import Any

from peers.sink_script import Rule
from scene import RITA, Play, Scene

from console.audience.store import suppress
from console.db import transaction
from console.sends.states import Change

TAKEN_UNANSWERED = Rule(stage="DOT", times=1, then="close", accepts=True)
ORDER_EVENT = {"type": "order.paid", "data": {"order": {"id": 1001}, "customer": {"email": RITA, "name": "Rita"}}}


@dataclass(frozen=True)
class Incident:
    """A cause, how many copies a mail server took, and how it came about."""

    cause: str
    copies: int
    play: Play
    script: tuple[Rule, ...] = field(default=())
    wanted: str = RITA


def _in_observing(scene: Scene, **settings: Any) -> None:
    scene.shop.type(mode="observe", **settings)


def double_click(scene: Scene) -> None:
    _in_observing(scene)
    scene.asks("receipt:1001", correlation="click-1", entities={"order": "1001"})
    scene.asks("receipt:1001", correlation="click-2", entities={"order": "1001"})
    scene.sends()


def double_click_with_two_tokens(scene: Scene) -> None:
    for token in ("7781", "7782"):
        scene.asks(f"reset:7:{token}", order=token, message_type="reset", event="password.reset",
                   code_path="auth.reset", entities={"user_id": "7", "reset_token_id": token})  # fmt: skip
    scene.sends()


def client_tries_again_at_once(scene: Scene) -> None:
    scene.asks("receipt:a", correlation="checkout-5", entities={"order": "1001"})
    scene.asks("receipt:b", correlation="checkout-5", entities={"order": "1001"})
    scene.sends()


def redelivered_under_another_id_with_another_stamp(scene: Scene) -> None:
    scene.hooks(id="evt_1", sent_at="10:00:00")
    scene.hooks(id="evt_1_again", sent_at="10:00:30")
    scene.sends()


def own_handler_takes_a_redelivery_for_new(scene: Scene) -> None:
    for number in (1, 2):
        scene.asks(
            f"hook:{number}", trigger_source="webhook", code_path="shop.hooks.paid", entities={"payment": "pay_9"}
        )
    scene.sends()


def two_endpoints_for_one_event(scene: Scene) -> None:
    from_staging = _second_endpoint(scene)
    scene.hooks(id="evt_1")
    scene.shop.post(made=from_staging)
    while scene.shop.read():
        pass
    scene.sends()


def one_endpoint_subscribed_twice(scene: Scene) -> None:
    made = _second_endpoint(scene, event_id_header="x-delivery")
    for delivery in ("d-1", "d-2"):
        scene.shop.post_with(made, ORDER_EVENT, {"x-delivery": delivery})
    while scene.shop.read():
        pass
    scene.sends()


def _second_endpoint(scene: Scene, **wanted: Any) -> Any:
    made = scene.shop.endpoint("staging", **wanted)
    scene.shop.on(scene.shop.draft("again", made=made))
    return made


def two_jobs(scene: Scene) -> None:
    for job in ("41", "42"):
        scene.asks(f"job:{job}", trigger_source="background_job", code_path="shop.jobs.receipt", correlation="pay-1",
                   entities={"order": "1001", "job_id": job})  # fmt: skip
    scene.sends()


def two_scheduled_runs_observed(scene: Scene) -> None:
    _in_observing(scene)
    for run in ("nightly-1", "nightly-2"):
        scene.asks("receipt:1001", trigger_source="cron", code_path="shop.nightly", correlation=run)
    scene.sends()


def one_job_twice_at_once(scene: Scene) -> None:
    _in_observing(scene)
    for _ in range(2):
        scene.asks("receipt:1001", trigger_source="background_job", code_path="shop.jobs.receipt",
                   entities={"order": "1001", "job_id": "41"})  # fmt: skip
    scene.sends()


def one_job_twice_with_keys_of_its_runs(scene: Scene) -> None:
    for run in (1, 2):
        scene.asks(f"receipt:1001:run-{run}", trigger_source="background_job", code_path="shop.jobs.receipt",
                   request="job-41")  # fmt: skip
    scene.sends()


def job_again_after_the_accept(scene: Scene) -> None:
    _in_observing(scene)
    for _ in range(2):
        scene.asks("receipt:1001", trigger_source="background_job", code_path="shop.jobs.receipt",
                   entities={"order": "1001", "job_id": "41"})  # fmt: skip
        scene.sends()


def request_again_after_the_accept(scene: Scene) -> None:
    for number in (1, 2):
        scene.asks(f"receipt:1001:{number}", correlation="checkout-5", entities={"order": "1001"})
        scene.sends()


def controller_and_callback(scene: Scene) -> None:
    scene.asks("receipt:1001", entities={"order": "1001"})
    scene.asks_in_sql("order_receipt:1001", entities='{"order": "1001"}')
    scene.sends()


def webhook_and_page(scene: Scene) -> None:
    scene.asks("receipt:1001", entities={"order": "1001"})
    scene.hooks()
    scene.sends()


def random_keys(scene: Scene) -> None:
    for key in ("0c6d3f9e-28a5-4a6f-9d60-3bd1a46f8a11", "7f4a1b52-8f5e-4a24-9f5f-1de07a0c6b42"):
        scene.asks(key, entities={"order": "1001"})
    scene.sends()


def key_is_free_again_too_soon(scene: Scene) -> None:
    scene.shop.type(window_s=1)
    scene.asks("receipt:1001", entities={"order": "1001"})
    scene.sends()
    time.sleep(1.2)
    scene.asks("receipt:1001", entities={"order": "1001"})
    scene.sends()


def second_order_refused(scene: Scene) -> None:
    scene.asks("receipt:rita", order=1001)
    scene.asks("receipt:rita", order=1002)
    scene.sends()


def second_order_answered_with_the_first(scene: Scene) -> None:
    scene.shop.type(on_conflict="first")
    scene.asks_in_sql("receipt:rita", order=1001)
    scene.asks_in_sql("receipt:rita", order=1002)
    scene.sends()


def somebody_elses_key(scene: Scene) -> None:
    scene.asks("receipt:today", to="rob@example.com")
    scene.asks("receipt:today")
    scene.sends()


def operator_sends_what_was_in_doubt(scene: Scene) -> None:
    scene.asks("receipt:1001")
    scene.sends()
    scene.settles(Change.SETTLE_RESEND, scene.shop.sends()[0].id)
    scene.sends()


def operator_sends_after_a_worker_was_killed(scene: Scene) -> None:
    scene.asks("receipt:1001")
    _kill_at_the_dot(scene)
    scene.sends()
    scene.settles(Change.SETTLE_RESEND, scene.shop.sends()[0].id, reason="The log of the server is gone.")
    scene.sends()


def policy_sends_again(scene: Scene) -> None:
    scene.shop.type(in_doubt_policy="resend")
    scene.asks("receipt:1001")
    scene.sends()


def policy_sends_again_after_a_worker_was_killed(scene: Scene) -> None:
    scene.shop.type(in_doubt_policy="resend")
    scene.hooks()
    _kill_at_the_dot(scene)
    scene.sends()


def _kill_at_the_dot(scene: Scene) -> None:
    """The server takes the message and says nothing; meanwhile its worker dies."""
    scene.sink.script.append(Rule(stage="DOT", times=1, then="ignore", accepts=True))
    with scene.worker() as child:
        scene.sink.wait_for(lambda sink: bool(sink.accepted), timeout_s=60)
        child.kill()
        scene.at.wait_until(lambda: not child.is_alive())
    # The line is cut with its worker, before anybody else sends.
    scene.sink.cut_connections()


def one_message(scene: Scene) -> None:
    scene.asks("receipt:1001")
    scene.sends()


def double_click_enforced(scene: Scene) -> None:
    scene.asks("receipt:1001", correlation="click-1")
    scene.asks("receipt:1001", correlation="click-2")
    scene.sends()


def two_kinds_of_messages(scene: Scene) -> None:
    scene.asks("receipt:1001")
    scene.asks("reset:7", message_type="reset")
    scene.sends()


def redelivery_that_was_known(scene: Scene) -> None:
    for _ in range(3):
        scene.hooks()
    scene.sends()


def opted_out(scene: Scene) -> None:
    with transaction(scene.engine) as session:
        suppress(session, scene.shop.office.account_id, email_lower=RITA, kind="unsubscribed", reason="by her link")
    scene.asks("receipt:1001")


def no_such_mailbox(scene: Scene) -> None:
    scene.asks("receipt:1001")
    scene.sends()


def nobody_asked(scene: Scene) -> None:
    scene.asks("receipt:1001", to="rob@example.com")
    scene.sends()


def in_doubt(scene: Scene) -> None:
    scene.asks("receipt:1001")
    scene.sends()


def jobs_without_ids(scene: Scene) -> None:
    for number in (1, 2):
        scene.asks(f"receipt:{number}", trigger_source="background_job", code_path="shop.jobs", correlation="pay-1")
    scene.sends()


def two_campaigns(scene: Scene) -> None:
    for name in ("Spring news", "Spring news again"):
        campaign_id = scene.at.stage.approved(name=name)
        with scene.at.sending():
            scene.at.wait_until_sent(campaign_id, timeout_s=60)


INCIDENTS = {
    "double click": Incident("event_created_twice", 2, double_click),
    "double click, two tokens": Incident("event_created_twice", 2, double_click_with_two_tokens),
    "client tries again at once": Incident("event_created_twice", 2, client_tries_again_at_once),
    "redelivered under another id": Incident("webhook_redelivered", 2, redelivered_under_another_id_with_another_stamp),
    "handler takes it for new": Incident("webhook_redelivered", 2, own_handler_takes_a_redelivery_for_new),
    "two endpoints": Incident("duplicate_subscription", 2, two_endpoints_for_one_event),
    "one endpoint subscribed twice": Incident("duplicate_subscription", 2, one_endpoint_subscribed_twice),
    "two jobs": Incident("job_enqueued_twice", 2, two_jobs),
    "two scheduled runs": Incident("job_enqueued_twice", 2, two_scheduled_runs_observed),
    "one job twice at once": Incident("job_ran_twice", 2, one_job_twice_at_once),
    "one job, keys of its runs": Incident("job_ran_twice", 2, one_job_twice_with_keys_of_its_runs),
    "job after the accept": Incident("retry_after_accept", 2, job_again_after_the_accept),
    "request after the accept": Incident("retry_after_accept", 2, request_again_after_the_accept),
    "controller and callback": Incident("two_code_paths", 2, controller_and_callback),
    "webhook and page": Incident("two_code_paths", 2, webhook_and_page),
    "random keys": Incident("key_too_narrow", 2, random_keys),
    "key free too soon": Incident("key_too_narrow", 2, key_is_free_again_too_soon),
    "second order refused": Incident("key_too_broad", 1, second_order_refused),
    "second order answered": Incident("key_too_broad", 1, second_order_answered_with_the_first),
    "somebody else's key": Incident("key_too_broad", 0, somebody_elses_key),
    "operator": Incident("operator_resend", 2, operator_sends_what_was_in_doubt, (TAKEN_UNANSWERED,)),
    "operator after a kill": Incident("operator_resend", 2, operator_sends_after_a_worker_was_killed),
    "policy": Incident("in_doubt_resend", 2, policy_sends_again, (TAKEN_UNANSWERED,)),
    "policy after a kill": Incident("in_doubt_resend", 2, policy_sends_again_after_a_worker_was_killed),
    "one message": Incident("one_accept", 1, one_message),
    "double click enforced": Incident("one_accept", 1, double_click_enforced),
    "two kinds": Incident("one_accept", 2, two_kinds_of_messages),
    "known redelivery": Incident("one_accept", 1, redelivery_that_was_known),
    "opted out": Incident("never_accepted", 0, opted_out),
    "no such mailbox": Incident(
        "never_accepted", 0, no_such_mailbox, (Rule(stage="RCPT", recipient=RITA, reply="550 5.1.1 no such user"),)
    ),
    "nobody asked": Incident("never_accepted", 0, nobody_asked),
    "in doubt": Incident("undecided", 1, in_doubt, (TAKEN_UNANSWERED,)),
    "jobs without ids": Incident("undecided", 2, jobs_without_ids),
    "two campaigns": Incident("undecided", 2, two_campaigns),
}  # fmt: skip
