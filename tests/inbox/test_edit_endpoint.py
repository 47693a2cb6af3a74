"""GET and POST /inbox/edit-endpoint/<endpoint_id>."""

import post
import visit
from sqlalchemy import Engine


def test_an_endpoint_is_changed_and_keeps_its_secret_when_none_is_typed(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(office, scheme="basic", secret="shop:very-secret")
    path = f"/inbox/edit-endpoint/{made.endpoint_id}"
    one = office.browser("ada")
    page = one.get(path).get_data(as_text=True)
    assert "very-secret" not in page
    assert '<option selected value="basic">' in page
    fields = {
        "scheme": "basic",
        "signature_encoding": "hex",
        "event_id_header": "",
        "event_id_path": "$.event.id",
        "secret": "",
    }
    answer = one.post(path, fields)
    assert answer.headers["Location"] == f"/inbox/endpoint/{made.endpoint_id}"
    [row] = post.rows(office, "SELECT event_id_path, event_id_header, cardinality(sealed_secrets) FROM inbox_endpoints")
    assert tuple(row) == ("$.event.id", "", 1)
    answer = one.post(path, fields | {"event_id_path": "$["})
    assert answer.status_code == 422
    assert "is no JSON path" in visit.words(answer)
    assert one.post(path, fields | {"scheme": "standard_webhooks"}).status_code == 422
    assert post.rows(office, "SELECT scheme, event_id_path FROM inbox_endpoints") == [("basic", "$.event.id")]


def test_only_admins_of_the_account_change_it(engine: Engine) -> None:
    office = visit.office(engine)
    path = f"/inbox/edit-endpoint/{post.endpoint(office).endpoint_id}"
    assert office.browser("oda").get(path).status_code == 403
    assert visit.office(engine, slug="other", app=office.app).browser("ada").get(path).status_code == 404
