"""From content to its compiled form, once per version: templates, the fields they use, and the fixed header fields."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from jinja2 import Template, meta, nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.runtime import Context

from console.content.body import Piece, piece
from console.content.header import mailbox, trouble_in, unstructured
from console.content.language import BUILT_IN, Language, fixed_texts
from console.content.sender import Sender, parse_sender
from console.content.source import Source
from console.content.text import text_from_html
from console.errors import InvalidInput

PART_CHARS_LIMIT = 500_000
SUBJECT_CHARS_LIMIT = 900
SENDER_CHARS_LIMIT = 500

HTML = Language(is_html=True)
PLAIN = Language(is_html=False)

# PostgreSQL can't keep the one, and the others (lone surrogates) have no encoding.
_UNKEPT = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True)
class Part:
    """One compiled template: `chunks` gives its text bit by bit, `names` are the values that it asks for.

    `pieces` holds its fixed texts in the encoding of bodies.
    """

    chunks: Callable[[Context], Iterator[str]]
    names: frozenset[str]
    pieces: Mapping[str, Piece]


@dataclass(frozen=True)
class Compiled:
    """A campaign version's content, ready to be filled any number of times and from any thread.

    `fields` are the top-level merge fields in use, sorted, without the built-in `email` and `unsubscribe_url`.
    `subject_line` and `from_line` are whole header fields when they are equal for everybody, else None.
    """

    fields: tuple[str, ...]
    has_unsubscribe_link: bool
    sender: Sender
    subject: Part
    sender_name: Part
    html: Part
    text: Part
    subject_line: bytes | None
    from_line: bytes | None


def compile_content(source: Source) -> Compiled:
    """Gives the compiled content.

    Raises: InvalidInput naming the field (subject, sender, html, text) and, for a template, the line in it.
    """
    _require_length("subject", source.subject, most=SUBJECT_CHARS_LIMIT)
    _require_length("sender", source.sender, most=SENDER_CHARS_LIMIT)
    if not source.subject.strip():
        raise InvalidInput("The subject is empty.", field="subject")
    if trouble_in(source.subject):
        raise InvalidInput(f"The subject holds a {trouble_in(source.subject)}; take it out.", field="subject")
    if not source.html.strip():
        raise InvalidInput("The HTML part is empty.", field="html")
    sender = parse_sender(source.sender)
    subject = _part(PLAIN, source.subject, field="subject")
    sender_name = _part(PLAIN, sender.name, field="sender")
    html = _part(HTML, source.html, field="html")
    text = _part(PLAIN, source.text if source.text.strip() else text_from_html(source.html), field="text")
    used = subject.names | sender_name.names | html.names | text.names
    return Compiled(
        fields=tuple(sorted(used.difference(BUILT_IN))),
        has_unsubscribe_link="unsubscribe_url" in html.names,
        sender=sender,
        subject=subject,
        sender_name=sender_name,
        html=html,
        text=text,
        subject_line=None if "{" in source.subject else unstructured("Subject", source.subject),
        from_line=None if "{" in sender.name else mailbox("From", sender.name, sender.address),
    )


def compile_rendered(source: Source) -> Compiled:
    """Gives finished parts in the compiled form: what looks like a template in them is text like any other.

    Raises: InvalidInput naming the field.
    """
    sender = parse_sender(source.sender)
    html = _fixed(source.html)
    return Compiled(
        fields=(),
        has_unsubscribe_link=False,
        sender=sender,
        subject=_fixed(source.subject),
        sender_name=_fixed(sender.name),
        html=html,
        text=_fixed(source.text if source.text.strip() else text_from_html(source.html)),
        subject_line=unstructured("Subject", source.subject),
        from_line=mailbox("From", sender.name, sender.address),
    )


def _fixed(text: str) -> Part:
    return Part(lambda _: iter((text,)), frozenset(), {text: piece(text)})


def _part(language: Language, text: str, *, field: str) -> Part:
    _require_length(field, text, most=PART_CHARS_LIMIT)
    unkept = _UNKEPT.search(text)
    if unkept:
        word = "a NUL byte" if unkept.group() == "\x00" else "half a character (a lone surrogate)"
        line = text.count("\n", 0, unkept.start()) + 1
        raise InvalidInput(f"The {field}, line {line}: there is {word} in it; take it out.", field=field)
    try:
        tree = language.read(text)
        if field in ("subject", "sender"):
            _require_header_constants(tree)
        names = frozenset(meta.find_undeclared_variables(tree))
        pieces = {fixed: piece(fixed) for fixed in fixed_texts(tree)}
        template = Template.from_code(language, language.compile(tree), {})
    except TemplateSyntaxError as error:
        raise InvalidInput(
            f"The {field}, line {error.lineno}: {(error.message or '').rstrip('.')}.", field=field
        ) from None
    except (SyntaxError, RecursionError, MemoryError, ValueError, OverflowError):
        raise InvalidInput(f"The {field} is nested too deeply, or holds a number too large.", field=field) from None
    return Part(template.root_render_func, names, pieces)


def _require_header_constants(tree: nodes.Template) -> None:
    """Raises: TemplateSyntaxError for a text such as '\\n' in a template, which no recipient's header could hold."""
    for constant in tree.find_all(nodes.Const):
        trouble = trouble_in(constant.value) if isinstance(constant.value, str) else None
        if trouble:
            raise TemplateSyntaxError(f"it holds a {trouble}; take it out", constant.lineno)


def _require_length(field: str, text: str, *, most: int) -> None:
    if len(text) > most:
        raise InvalidInput(f"The {field} has {len(text):,} characters; it may have {most:,}.", field=field)
