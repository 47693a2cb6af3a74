"""The plain-text part made from the HTML part."""

import re
from typing import Any

import html2text

# A merge field or a block of the template language; html2text would change what is in it.
_MARKS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# Private-use characters pass through html2text unchanged and occur in no newsletter.
_OPEN, _CLOSE = "\uf8f0", "\uf8f1"
_HELD = re.compile(f"{_OPEN}(\\d+){_CLOSE}")
# html2text writes Markdown, which needs these backslashes; a person who reads the text does not.
_ESCAPED = re.compile(r"(?m)^(\s*\d*)\\([.+-])")
_SAME_TWICE = re.compile(r"(\S+) <\1>")


def text_from_html(html: str) -> str:
    """Gives the text part for an HTML part, with merge fields untouched.

    A link is its text and then its address in angle brackets (RFC 3986, appendix C), an image its alternative text.
    Nothing is wrapped: merge fields have no length yet.
    """
    marks: list[str] = []

    def hold(match: re.Match[str]) -> str:
        marks.append(match.group())
        return f"{_OPEN}{len(marks) - 1}{_CLOSE}"

    held = _MARKS.sub(hold, html.replace(_OPEN, "").replace(_CLOSE, ""))
    text = _ESCAPED.sub(r"\1\2", _reader().handle(held))
    text = _SAME_TWICE.sub(r"\1", text)
    return _HELD.sub(lambda match: marks[int(match.group(1))], text).strip() + "\n"


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
