"""GET and POST /inbox/new-endpoint: the address is shown once, and works."""

import re

import post
import pytest
import visit
from sqlalchemy import Engine

PATH = "/inbox/new-endpoint"
FIELDS = {
    "name": "shop", "scheme": "none", "signature_encoding": "hex", "event_id_header": "webhook-id",
    "event_id_path": "id", "event_type_path": "$.type",
}  # fmt: skip


@pytest.fixture
def office(engine: Engine) -> visit.Office:
    return visit.office(engine)


def test_the_address_is_shown_once_and_takes_events(office: visit.Office) -> None:
    one = office.browser("ada")
    answer = one.post(PATH, FIELDS)
    found = re.search(r"http://localhost(/inbox/shop/[A-Za-z0-9_-]{43})<", answer.get_data(as_text=True))
    assert found is not None
    assert office.app.test_client().post(found[1], json={"id": "e1"}).status_code == 200
    [(endpoint_id,)] = post.rows(office, "SELECT id FROM inbox_endpoints")
    for path in (f"/inbox/endpoint/{endpoint_id}", "/inbox/endpoints", "/inbox/"):
        assert found[1] not in one.get(path).get_data(as_text=True)
    assert post.rows(office, "SELECT event_id_path FROM inbox_endpoints") == [("$.id",)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"name": ""}, "Give the endpoint a name"), ({"name": "Über"}, "An endpoint's name has"),
     ({"scheme": "basic"}, "Give the secret"), ({"scheme": "basic", "secret": "x"}, "a colon between"),
     ({"scheme": "standard_webhooks", "secret": "%%"}, "whsec_ and base64"), ({"event_id_path": "$..id"},
     "several values"),
     ({"scheme": "nonsense"}, "Not a valid choice"), ({"name": "a\x00"}, "NUL")],
)  # fmt: skip
def test_what_is_wrong_stands_beside_its_field(office: visit.Office, changes: dict, words: str) -> None:
    answer = office.browser("ada").post(PATH, FIELDS | changes)
    assert answer.status_code == 422
    assert words in visit.words(answer)
    assert post.rows(office, "SELECT 1 FROM inbox_endpoints") == []


def test_a_secret_is_never_given_back(office: visit.Office) -> None:
    answer = office.browser("ada").post(PATH, FIELDS | {"scheme": "basic", "secret": "shop:very-secret", "name": ""})
    assert answer.status_code == 422
    assert "very-secret" not in answer.get_data(as_text=True)


def test_a_name_that_is_taken_is_said_beside_it(office: visit.Office) -> None:
    post.endpoint(office)
    answer = office.browser("ada").post(PATH, FIELDS)
    assert answer.status_code == 422
    assert "choose another name" in visit.words(answer)


@pytest.mark.parametrize("name", ["mia", "abe", "sue", "oda"])
def test_only_admins_make_endpoints(office: visit.Office, name: str) -> None:
    assert office.browser(name).get(PATH).status_code == 403
