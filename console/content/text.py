"""The plain-text part made from the HTML part."""

import re
from html import unescape
from typing import Any

import html2text

# A merge field or a block of the template language; html2text would change what is in it.
_OPENING = re.compile(r"\{[{%#]")
_CLOSINGS = {"{{": "}}", "{%": "%}", "{#": "#}"}
# Private-use characters pass through html2text unchanged and occur in no newsletter.
_OPEN, _CLOSE = "\uf8f0", "\uf8f1"
_HELD = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
# html2text writes Markdown, which needs these backslashes; a person who reads the text does not.
_ESCAPED = re.compile(r"(?m)^([^\S\n]*\d*)\\([.+-])")
_ADDRESS = re.compile(r" <([^\s<>]+)>")

# html2text takes quadratic time for tags, comments and entities without an end: it reads on to the text's end for
# each. More of them than this, or a very long part, and the tags are only taken off.
UNFINISHED_LIMIT = 100
READER_CHARS_LIMIT = 50_000
READER_LINES_LIMIT = 2_000
_TAG = re.compile(r"(<[^<>]*>)")
_ENTITY = re.compile(r"&#?\w{1,32};")
_UNSHOWN = re.compile(r"<(/?)(?:style|script|head|title)\b", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n\s+")


def text_from_html(html: str) -> str:
    """Gives the text part for an HTML part, with merge fields untouched.

    A link is its text and then its address in angle brackets (RFC 3986, appendix C), an image its alternative text.
    Nothing is wrapped: merge fields have no length yet.
    """
    marks: list[str] = []

    held = _hold(html.replace(_OPEN, "").replace(_CLOSE, ""), marks)
    text = _stripped(held) if _is_slow(held) else _ESCAPED.sub(r"\1\2", _reader().handle(held))
    text = _ADDRESS.sub(lambda match: "" if text.endswith(match[1], 0, match.start()) else match[0], text)
    return _HELD.sub(lambda match: marks[int(match.group(1))], text).strip() + "\n"


def _hold(html: str, marks: list[str]) -> str:
    """Gives the HTML with its marks replaced by their numbers; looks for each kind's missing end only once."""
    written: list[str] = []
    position = 0
    unclosed: set[str] = set()
    for match in _OPENING.finditer(html):
        if match.start() < position or match.group() in unclosed:
            continue
        end = html.find(_CLOSINGS[match.group()], match.end())
        if end < 0:
            unclosed.add(match.group())
            continue
        written += (html[position : match.start()], f"{_OPEN}{len(marks)}{_CLOSE}")
        position = end + 2
        marks.append(html[match.start() : position])
    return "".join(written) + html[position:]


def _is_slow(html: str) -> bool:
    """Says whether html2text would take long for this."""
    unfinished_tags = html.count("<") - len(_TAG.findall(html))
    unfinished_entities = html.count("&") - len(_ENTITY.findall(html))
    unfinished_comments = html.count("<!") - html.count("-->")
    return (
        len(html) > READER_CHARS_LIMIT
        or html.count("\n") + html.count("\r") > READER_LINES_LIMIT
        or (max(unfinished_tags, unfinished_entities, unfinished_comments) > UNFINISHED_LIMIT)
    )


def _stripped(html: str) -> str:
    """Gives the text between the tags, a line for each; in linear time."""
    written: list[str] = []
    is_shown = True
    for each in _TAG.split(html):
        unshown = _UNSHOWN.match(each)
        if unshown:
            is_shown = bool(unshown.group(1))
        elif is_shown:
            written.append("\n" if each.startswith("<") and each.endswith(">") else each)
    return _BLANK_LINES.sub("\n", unescape("".join(written)))


def _reader() -> html2text.HTML2Text:
    reader = html2text.HTML2Text(bodywidth=0)
    reader.ignore_emphasis = True
    reader.unicode_snob = True
    reader.ignore_tables = True  # in mail they are layout
    links: list[str] = []

    def write_tag(reader: html2text.HTML2Text, tag: str, attrs: dict[str, str | None], is_start: bool) -> Any:
        """Writes links and images; says False for every other tag, which html2text then does itself."""
        if tag == "img":
            reader.o(attrs.get("alt") or "")
        elif tag == "a" and is_start:
            links.append((attrs.get("href") or "").strip())
        elif tag == "a":
            address = links.pop() if links else ""
            if address and not address.startswith("#"):
                reader.o(f" <{address}>")
        else:
            return False
        return True

    reader.tag_callback = write_tag  # pyright: ignore[reportAttributeAccessIssue]  # declared without a type, as None
    return reader
