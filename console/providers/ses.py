"""Amazon SES v2 by boto3 with its retries off: it knows no keys and can't be asked for a message, its reports tell.

Source: docs.aws.amazon.com/ses/latest/APIReference-V2/API_SendEmail.html; botocore's retries would send up to three
times (measured with 1.44.8, see the design's providers.md, 0).
"""

from typing import Any

from boto3.session import Session
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ProxyConnectionError,
)

from console.providers.base import (
    Accepted,
    Answer,
    Capabilities,
    Deferred,
    Finding,
    Message,
    NoAnswer,
    Refused,
    Reply,
    Trouble,
    Unknown,
    Untouched,
)
from console.providers.call_channel import Call, CallChannel
from console.providers.http_replies import TEXT_LIMIT
from console.providers.recent_check import RecentCheck

TAG_NAME = "sendonce"
CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 60.0
LARGEST_BYTES = 40_000_000
_THROTTLED = frozenset({"TooManyRequestsException", "ThrottlingException", "Throttling", "RequestThrottled"})
# True of every message: credentials, permissions, a paused account, a sender that is not verified.
_OURS = frozenset(
    {
        "AccessDeniedException",
        "AccountSuspendedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "LimitExceededException",
        "MailFromDomainNotVerifiedException",
        "MissingAuthenticationTokenException",
        "NotFoundException",
        "SendingPausedException",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)
_REFUSED = frozenset({"BadRequestException", "MessageRejected", "ValidationException"})
_NOT_SENT = (EndpointConnectionError, ConnectTimeoutError, ProxyConnectionError, NoCredentialsError)


class Ses:
    """See providers.base.Provider."""

    capabilities = Capabilities(has_reports=True)

    def __init__(
        self,
        name: str,
        *,
        region: str,
        access_key: str,
        secret_key: str,
        configuration_set: str | None = None,
        endpoint_url: str | None = None,
        timeout_s: float = ANSWER_TIMEOUT_S,
    ):
        self.name = name
        self._configuration_set = configuration_set
        self._timeout_s = timeout_s
        # Of one client many threads may make use; of a session only the one that made it.
        self._client: Any = Session().client(
            "sesv2",
            region_name=region,
            aws_access_key_id=access_key,
            aws_secret_access_key=secret_key,
            endpoint_url=endpoint_url,
            config=Config(
                retries={"total_max_attempts": 1, "mode": "standard"},
                connect_timeout=CONNECT_TIMEOUT_S,
                read_timeout=timeout_s,
                max_pool_connections=64,
            ),
        )

        self._recent = RecentCheck(self.check)

    def connect(self) -> CallChannel | Trouble:
        trouble = self._recent.trouble()
        if trouble is not None:
            return trouble
        return CallChannel(_Caller(self), timeout_s=CONNECT_TIMEOUT_S + self._timeout_s + 1.0)

    def check(self) -> Trouble | None:
        try:
            account = self._client.get_account()
        except (BotoCoreError, ClientError) as error:
            code = _code(error)
            # Those who may send need not be allowed to ask; too many questions are no trouble either.
            if code in _THROTTLED or code == "AccessDeniedException":
                return None
            return Trouble(_words(error), is_lasting=code in _OURS)
        if account.get("SendingEnabled") is False:
            return Trouble("Amazon SES: sending is switched off for this account", is_lasting=True)
        return None

    def find(self, message: Message) -> Finding:
        return Unknown("Amazon SES can't be asked for a message by our own name")

    def send(self, message: Message) -> Answer:
        """Makes the one request."""
        values: dict[str, Any] = {
            "FromEmailAddress": message.mail_from,
            "Destination": {"ToAddresses": [message.rcpt_to]},
            "Content": {"Raw": {"Data": message.wire}},
            "EmailTags": [{"Name": TAG_NAME, "Value": message.tag}] if message.tag else [],
        }
        if self._configuration_set:
            values["ConfigurationSetName"] = self._configuration_set
        try:
            answer = self._client.send_email(**values)
        except (BotoCoreError, ClientError) as error:
            judged = _judge(error)
            if isinstance(judged, Untouched):
                self._recent.forget()
            return judged
        message_id = answer.get("MessageId")
        return Accepted(Reply("response", code=200, text=f"accepted as {message_id}"), message_id)


class _Caller:
    """See call_channel.Caller; the connections are the client's."""

    def __init__(self, ses: Ses):
        self._ses = ses

    def prepare(self, message: Message) -> Call | Refused:
        if message.needs_smtputf8:
            return Refused(Reply("request", text="Amazon SES takes no addresses with other than ASCII before the @."))
        if len(message.wire) > LARGEST_BYTES * 3 // 4:
            return Refused(Reply("request", text=f"the message has {len(message.wire)} bytes, Amazon SES takes 40 MB"))
        return lambda: self._ses.send(message)

    def close(self) -> None:
        """Nothing of one's own is kept open."""


def _judge(error: BotoCoreError | ClientError) -> Answer:
    if isinstance(error, _NOT_SENT):
        return Untouched(_words(error), Trouble(_words(error), is_lasting=isinstance(error, NoCredentialsError)))
    if not isinstance(error, ClientError):
        # Cut off, timed out or not understood, after the connection stood: it may have been taken.
        return NoAnswer(Reply("response", text=_words(error)))
    code, status = _code(error), error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    words = Reply("response", code=status or None, text=_words(error))
    if code in _THROTTLED or status == 429:
        if "quota" in words.text.lower():
            return Untouched(words.text, Trouble(words.text, is_lasting=True))
        return Deferred(words)
    if code in _OURS or status in (401, 403) or _is_about_sender(code, words.text):
        return Untouched(words.text, Trouble(words.text, is_lasting=True))
    if code in _REFUSED or (400 <= status <= 499 and status != 408):
        return Refused(words)
    return NoAnswer(words)


def _is_about_sender(code: str, text: str) -> bool:
    """SES says MessageRejected also of a sender that is not verified, which no other message will change."""
    return code == "MessageRejected" and "not verified" in text


def _code(error: BotoCoreError | ClientError) -> str:
    return error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""


def _words(error: BotoCoreError | ClientError) -> str:
    if isinstance(error, ClientError):
        told = error.response.get("Error", {})
        return f"{told.get('Code', '')}: {told.get('Message', '')}".replace("\x00", "�")[:TEXT_LIMIT]
    return str(error).replace("\x00", "�")[:TEXT_LIMIT]
