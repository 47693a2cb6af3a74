"""Which merge fields a template can't do without, whatever else it is given: asked for before a message is accepted.

What a condition, a fallback or a loop's rounds may still ask for is found when the message is filled. Here a field must
surely be missed: to refuse a message that could have been made would be worse than to find its gap later.
"""

from collections.abc import Iterator

from jinja2 import nodes

from console.content.compile import PLAIN
from console.content.source import Source

# With these a missing value is no gap.
_FORGIVING = frozenset({"default", "d"})


def required_fields(source: Source) -> frozenset[str]:
    """Gives the top-level fields, of all parts of content that compiles, that are put out or gone through in any case.

    With a built-in one (`unsubscribe_url`) among them, when it is used so.
    """
    texts = (source.subject, source.sender, source.html, source.text)
    return frozenset(name for text in texts if "{" in text for name in _names(PLAIN.parse(text).body))


def _names(found: list[nodes.Node]) -> Iterator[str]:
    for node in found:
        if isinstance(node, nodes.Output):
            for each in node.nodes:
                yield from _surely_read(each)
        elif isinstance(node, nodes.For):
            yield from _surely_read(node.iter)


def _surely_read(node: nodes.Node) -> Iterator[str]:
    """Gives the fields that working out this expression needs."""
    match node:
        case nodes.Name(name=name):
            yield name
        case nodes.Getattr() | nodes.Getitem():
            yield from _surely_read(node.node)
        case nodes.Filter(node=nodes.Expr() as value, name=name) if name not in _FORGIVING:
            yield from _surely_read(value)
        case nodes.Concat(nodes=parts):
            for each in parts:
                yield from _surely_read(each)
        case nodes.Add(left=left, right=right) | nodes.Sub(left=left, right=right):
            yield from _surely_read(left)
            yield from _surely_read(right)
