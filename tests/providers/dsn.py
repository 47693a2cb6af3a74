"""Reports of mail servers, as the servers write them (RFC 3464)."""


def report(
    *,
    tag: str = "",
    action: str = "failed",
    status: str = "5.1.1",
    said: str = "smtp; 550 5.1.1 <rita@example.com>: Recipient address rejected: User unknown",
    final: str = "rita@example.com",
    original: str = "",
    message_id: str = "",
    to: str = "rita@example.com",
    behind: bytes = b"",
) -> bytes:
    """A report as postfix writes it; `behind` stands in the returned message's body."""
    envelope = f"Original-Envelope-Id: {tag}\n" if tag else ""
    asked = f"Original-Recipient: rfc822;{original}\n" if original else ""
    returned = f"Message-ID: {message_id}\n" if message_id else ""
    text = f"""\
From: MAILER-DAEMON@mx.example.net (Mail Delivery System)
To: news@example.com
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status;
	boundary="4CE2A1D07.1796000000/mx.example.net"

This is a MIME-encapsulated message.

--4CE2A1D07.1796000000/mx.example.net
Content-Description: Notification
Content-Type: text/plain; charset=us-ascii

This is the mail system at host mx.example.net.

--4CE2A1D07.1796000000/mx.example.net
Content-Description: Delivery report
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.net
{envelope}X-Postfix-Queue-ID: 4CE2A1D07
Arrival-Date: Mon,  7 Dec 2026 09:00:00 +0000 (UTC)

Final-Recipient: rfc822; {final}
{asked}Action: {action}
Status: {status}
Remote-MTA: dns; mail.example.com
Diagnostic-Code: {said}
Last-Attempt-Date: Mon, 7 Dec 2026 10:00:00 +0100

--4CE2A1D07.1796000000/mx.example.net
Content-Description: Undelivered Message Headers
Content-Type: text/rfc822-headers

From: News <news@example.com>
To: Rita <{to}>
{returned}Subject: News
"""
    return text.replace("\n", "\r\n").encode() + behind + b"\r\n--4CE2A1D07.1796000000/mx.example.net--\r\n"
