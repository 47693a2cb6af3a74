"""The plain-text part made from the HTML part."""

import re

import html2text

# A merge field or a block of the template language; html2text would escape and wrap what is in it.
_MARKS = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", re.DOTALL)
# Private-use characters pass through html2text unchanged and occur in no newsletter.
_OPEN, _CLOSE = "\uf8f0", "\uf8f1"
_HELD = re.compile(f"{_OPEN}(\\d+){_CLOSE}")


def text_from_html(html: str) -> str:
    """Gives the text part for an HTML part: links kept with their addresses, merge fields untouched.

    Images become their alternative text, tables become lines; nothing is wrapped: merge fields have no length.
    """
    marks: list[str] = []

    def hold(match: re.Match[str]) -> str:
        marks.append(match.group())
        return f"{_OPEN}{len(marks) - 1}{_CLOSE}"

    held = _MARKS.sub(hold, html.replace(_OPEN, "").replace(_CLOSE, ""))
    reader = html2text.HTML2Text(bodywidth=0)
    reader.images_to_alt = True
    reader.ignore_emphasis = True
    reader.inline_links = True
    reader.protect_links = False
    reader.unicode_snob = True
    text = reader.handle(held)
    return _HELD.sub(lambda match: marks[int(match.group(1))], text).strip() + "\n"
