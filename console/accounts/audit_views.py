"""The audit log, for admins: who did what, and who looked for whom."""

from console.accounts import audit_store
from console.accounts.key_views import accounts
from console.web.database import transaction
from console.web.guards import account_id, role
from console.web.pages import page
from console.web.paging import PAGE_ROWS, asked_number, cut

__all__ = ["accounts"]


@accounts.get("/audit")
@role("admin")
def audit():
    """Lists what was done in the account, newest first."""
    before = asked_number()
    with transaction() as session:
        rows = audit_store.newest(session, account_id(), before=before, limit=PAGE_ROWS + 1)
    found = cut(rows, limit=PAGE_ROWS, cursor=lambda row: row.id)
    return page("accounts/audit", found=found, is_first=before is None)
