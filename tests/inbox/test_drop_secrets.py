"""POST /inbox/drop-secrets/<endpoint_id>."""

import post
import visit
from sqlalchemy import Engine

from console.db import transaction
from console.inbox import service
from console.inbox.service import Wanted


def test_only_the_newest_secret_stays(engine: Engine) -> None:
    office = visit.office(engine)
    made = post.endpoint(office, scheme="basic", secret="shop:old")
    with transaction(engine) as session:
        service.edit_endpoint(
            session, office.account_id, made.endpoint_id, user_id=None,
            wanted=Wanted(scheme="basic", secret="shop:new"),
            secret_key=post.SETTINGS.secret_key,
        )  # fmt: skip
    page = f"/inbox/endpoint/{made.endpoint_id}"
    path = f"/inbox/drop-secrets/{made.endpoint_id}"
    assert office.browser("oda").post(path, form_at="/inbox/").status_code == 403
    one = office.browser("ada")
    assert "2 secrets" in visit.words(one.get(page))
    assert one.post(path, form_at=page).headers["Location"] == page
    assert "1 secret," in visit.words(one.get(page))
    with transaction(engine) as session:
        endpoint = service.endpoint_store.show_endpoint(session, office.account_id, made.endpoint_id)
        assert service.scheme_of(endpoint, secret_key=post.SETTINGS.secret_key).secrets == ["shop:new"]
