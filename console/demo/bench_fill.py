"""How fast messages are filled: one of the figures of `sendonce bench`. One thread, no network, no database."""

import time
from datetime import UTC, datetime
from itertools import cycle, islice

from console.content.compile import compile_content
from console.content.fill import fill
from console.content.header import Headers
from console.content.source import Recipient, Source

_PARAGRAPH = (
    '<p style="color:#333;font:15px/1.5 Arial,sans-serif">The new collection is in: boots for wet days, coats that'
    " last, scarves in seven colours. Come and see, or have it sent to your door – postage is on us until Sunday.</p>\n"
)
NEWSLETTER = Source(
    subject="{{ first_name }}, autumn is here",
    sender="Ann Lee <news@example.com>",
    html=(
        '<html><body style="margin:0">\n<h1>Hello {{ first_name | default("friend") }}</h1>\n'
        + _PARAGRAPH * 7
        + "<p>You have {{ points }} points. Your shop: {{ address.street }}, {{ address.city }}.</p>\n"
        + "{% if is_member %}<p>As a member you get 10 % off.</p>\n{% endif %}"
        + '<p><a href="{{ unsubscribe_url }}">Leave this list</a> ({{ email }})</p>\n</body></html>\n'
    ),
    text=(
        "Hello {{ first_name | default('friend') }},\n\n"
        + "The new collection is in: boots for wet days, coats that last, scarves.\n" * 20
        + "\nYou have {{ points }} points. Your shop: {{ address.street }}, {{ address.city }}.\n"
        + "Leave this list: {{ unsubscribe_url }}\n"
    ),
)
HEADERS = Headers(list_id="list-1.demo.example.com", feedback_id="1:demo:campaign:sendonce", list_name="Our news")


def recipients(count: int) -> list[Recipient]:
    """Gives made-up recipients with all the values that NEWSLETTER asks for."""
    names = cycle(("Ann", "Zoë", "Jean-Luc", "Bo", "Mary Jane", "李雷"))
    dated_at = datetime(2027, 1, 1, tzinfo=UTC)
    return [
        Recipient(
            email=f"person{number}@example.com",
            values={
                "first_name": name,
                "points": number,
                "is_member": number % 3 == 0,
                "address": {"street": f"{number} High Street", "city": "Zürich"},
            },
            message_id=f"<{number:032x}@mail.example.com>",
            dated_at=dated_at,
            unsubscribe_url=f"https://console.example.com/audience/unsubscribe/{number:086x}",
        )
        for number, name in enumerate(islice(names, count))
    ]


def run(*, message_count: int = 5_000, repeats: int = 3) -> float:
    """Gives how many two-part messages of about 5 kB one core fills in a second: the best of some repeats."""
    compiled = compile_content(NEWSLETTER)
    people = recipients(message_count)
    best_s = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        for person in people:
            fill(compiled, person, HEADERS)
        best_s = min(best_s, time.perf_counter() - began)
    return message_count / best_s
