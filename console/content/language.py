"""The template language: which part of Jinja2 a marketer may use. Templates are untrusted code.

Allowed are merge fields with paths, conditions, loops over values, comparisons, and a short list of filters and tests.
Everything that could run long, grow without bound or reach Python (calls, macros, includes, assignments, attributes
of Python objects) is refused when the content is saved; Jinja2's sandbox stands behind that as a second wall.
"""

from collections.abc import Callable, Iterator
from html import escape
from itertools import groupby
from typing import Any

from jinja2 import StrictUndefined, nodes, pass_context
from jinja2.exceptions import TemplateRuntimeError, TemplateSyntaxError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.tests import TESTS
from jinja2.visitor import NodeTransformer

from console.content.values import RUN_KEY, Branch, Missing, Series, pick

BUILT_IN = ("email", "unsubscribe_url")

SEPARATOR_LIMIT = 100

# Fields, conditions, filters and so on in one part; a long newsletter has some hundreds.
NODES_LIMIT = 5_000

# The filters that Language.read puts around what a loop goes over and in the place of `~`; no template can write these
# names.
_ROUNDS = " rounds"

_CONCAT = " concat"

PRECISION_LIMIT = 20

_NODES = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Name, nodes.Const, nodes.List,
    nodes.Tuple, nodes.Getattr, nodes.Getitem, nodes.Filter, nodes.Test, nodes.Compare, nodes.Operand, nodes.And,
    nodes.Or, nodes.Not, nodes.CondExpr, nodes.Concat, nodes.Add, nodes.Sub, nodes.Neg, nodes.Keyword,
)  # fmt: skip

_NODE_WORDS: dict[type[nodes.Node], str] = {
    nodes.Call: "calls such as name()",
    nodes.Assign: "{% set %}",
    nodes.AssignBlock: "{% set %}",
    nodes.Include: "{% include %}",
    nodes.Import: "{% import %}",
    nodes.FromImport: "{% import %}",
    nodes.Extends: "{% extends %}",
    nodes.Block: "{% block %}",
    nodes.Macro: "{% macro %}",
    nodes.CallBlock: "{% call %}",
    nodes.FilterBlock: "{% filter %}",
    nodes.With: "{% with %}",
    nodes.Slice: "slices such as name[1:3]",
    nodes.Dict: "{...} values",
    nodes.Mul: "the sign *",
    nodes.Pow: "the sign **",
    nodes.Mod: "the sign %",
    nodes.Div: "the sign /",
    nodes.FloorDiv: "the sign //",
}

_LOOP_WORDS = frozenset({"index", "index0", "revindex", "revindex0", "first", "last", "length"})


def _default(value: Any, fallback: Any = "", _boolean: bool = False) -> Any:
    """Gives the fallback for a value that is missing, null or blank."""
    if isinstance(value, Undefined) or value is None or (isinstance(value, str) and not value.strip()):
        return fallback
    return value


def _join(value: Any, separator: str = "") -> Any:
    """Gives the elements of a series as one text. Only of a series: joining a joined text could grow without bound."""
    if isinstance(value, Missing):
        return value
    if not isinstance(value, Series):
        raise TemplateRuntimeError("join is for lists")
    if len(str(separator)) > SEPARATOR_LIMIT:
        raise TemplateRuntimeError(f"join takes a separator of at most {SEPARATOR_LIMIT} characters")
    texts = [str(shown(each)) for each in value]
    value.run.take_chars(sum(map(len, texts)) + len(texts) * len(str(separator)))
    return str(separator).join(texts)


def _round(value: Any, precision: Any = 0, method: Any = "common") -> Any:
    """Gives the number rounded. Bounded, because Jinja2's own raises 10 to any power that it is told."""
    if not isinstance(precision, int) or abs(precision) > PRECISION_LIMIT:
        raise TemplateRuntimeError(f"round takes a precision from -{PRECISION_LIMIT} to {PRECISION_LIMIT}")
    return FILTERS["round"](value, precision, method)


@pass_context
def _concat(context: Context, values: list[Any]) -> str:
    """Gives the values as one text, and counts its length."""
    texts: list[str] = []
    for value in values:
        if isinstance(value, list | tuple):
            raise TemplateRuntimeError("a list is not a text")
        texts.append(str(value))
        context.parent[RUN_KEY].take_chars(len(texts[-1]))
    return "".join(texts)


def _counted(original: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a filter that makes texts, so that the length of what it makes is counted and it never runs at compile."""

    @pass_context
    def counted(context: Context, value: Any, *args: Any, **keywords: Any) -> Any:
        if isinstance(value, list | tuple):
            raise TemplateRuntimeError("a list is not a text")
        # Jinja2 writes the environment before the value where a filter asks for it, as truncate does.
        first = (context.environment,) if hasattr(original, "jinja_pass_arg") else ()
        made = original(*first, value, *args, **keywords)
        if isinstance(made, str):
            context.parent[RUN_KEY].take_chars(len(made))
        return made

    return counted


def _first(value: Any) -> Any:
    return value if isinstance(value, Missing) else pick(value, 0)


def _last(value: Any) -> Any:
    return value if isinstance(value, Missing) else pick(value, -1)


@pass_context
def _rounds(context: Context, value: Any) -> Any:
    """Gives what a loop goes over, and counts its rounds."""
    if isinstance(value, list | tuple):
        context.parent[RUN_KEY].take_rounds(len(value))
    elif not isinstance(value, Series | Missing):
        raise TemplateRuntimeError("a loop goes over lists only")
    return value


_FILTERS: dict[str, Callable[..., Any]] = {
    **{
        name: FILTERS[name]
        for name in ("count", "float", "int", "length")
    },
    **{
        name: _counted(FILTERS[name])
        for name in ("capitalize", "lower", "title", "trim", "truncate", "upper", "urlencode")
    },
    "d": _default,
    "default": _default,
    "first": _first,
    "join": _join,
    "last": _last,
    "round": _round,
}  # fmt: skip

_TESTS: dict[str, Callable[..., Any]] = {
    **{
        name: TESTS[name]
        for name in ("defined", "undefined", "string", "number", "odd", "even", "true", "false", "in", "eq", "equalto",
                     "ne", "lt", "lessthan", "le", "gt", "greaterthan", "ge")
    },
    "none": lambda value: value is None or isinstance(value, Missing),
}  # fmt: skip


def shown(value: Any) -> Any:
    """Gives what an output puts into the message; notes a missing value. Raises: TemplateRuntimeError for no text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Missing):
        return value.note()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Branch | Series):
        return str(value)
    if value is None:
        raise TemplateRuntimeError("none is not a text")
    if isinstance(value, list | tuple):
        raise TemplateRuntimeError("a list is not a text")
    return value


def shown_in_html(value: Any) -> str:
    """Gives what an output puts into an HTML part: always escaped, also for quoted attributes."""
    text = str(shown(value))
    return text if text.isalnum() else escape(text)


class Language(ImmutableSandboxedEnvironment):
    """A Jinja2 environment with nothing in it but what this module allows.

    Escaping is a matter of the output, not of the values: every output of an HTML part passes `shown_in_html`. That
    does what Jinja2's autoescape does, at a third of its cost, since no value may be exempt (there is no `safe`).
    """

    # Jinja2 neither folds these when it compiles nor runs them itself: call_binop does.
    intercepted_binops = frozenset({"+", "-"})

    def __init__(self, *, is_html: bool):
        super().__init__(
            autoescape=False,
            keep_trailing_newline=True,
            undefined=StrictUndefined,
            finalize=shown_in_html if is_html else shown,
            cache_size=0,
        )
        self.globals.clear()
        self.filters = {**_FILTERS, _ROUNDS: _rounds, _CONCAT: _concat}
        self.tests = dict(_TESTS)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Gives `obj.attribute`: keys of values, and a loop's own counters; never an attribute of a Python object."""
        if isinstance(obj, LoopContext) and attribute in _LOOP_WORDS:
            return getattr(obj, attribute)
        return pick(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        """Gives `obj[argument]` by the same rule."""
        return pick(obj, argument)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Gives left + right or left - right of numbers. Raises: TemplateRuntimeError for texts and lists."""
        for gap in (left, right):
            if isinstance(gap, Missing):
                gap.note()
                return gap
        if not isinstance(left, int | float) or not isinstance(right, int | float):
            raise TemplateRuntimeError(f"the sign {operator} is for numbers; put texts together with ~")
        return left + right if operator == "+" else left - right

    def read(self, text: str) -> nodes.Template:
        """Gives the tree of a template that keeps to the language. Raises: TemplateSyntaxError with the line."""
        tree = self.parse(text)
        found = list(_every(tree))
        if sum(not isinstance(node, nodes.TemplateData) for node in found) > NODES_LIMIT:
            raise TemplateSyntaxError(f"more than {NODES_LIMIT} fields, conditions and so on", 1)
        for node in found:
            _check(node)
        for loop in tree.find_all(nodes.For):
            loop.iter = nodes.Filter(loop.iter, _ROUNDS, [], [], None, None, lineno=loop.lineno)
        _Concats().visit(tree)
        tree.set_environment(self)
        return tree


def fixed_texts(tree: nodes.Template) -> Iterator[str]:
    """Gives the fixed texts of a template as its outputs will hand them over: neighbours joined."""
    for output in tree.find_all(nodes.Output):
        for is_text, group in groupby(output.nodes, lambda node: isinstance(node, nodes.TemplateData)):
            if is_text:
                yield "".join([node.data for node in group if isinstance(node, nodes.TemplateData)])


class _Concats(NodeTransformer):
    """Puts the counting filter in the place of `~`."""

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        values = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(values, _CONCAT, [], [], None, None, lineno=node.lineno)


def _every(tree: nodes.Node) -> Iterator[nodes.Node]:
    waiting: list[nodes.Node] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(node.iter_child_nodes())


def _check(node: nodes.Node) -> None:
    if not isinstance(node, _NODES):
        word = _NODE_WORDS.get(type(node), type(node).__name__)
        raise TemplateSyntaxError(f"{word} can't be used in a message", node.lineno)
    if isinstance(node, nodes.Filter) and node.name not in _FILTERS:
        raise TemplateSyntaxError(f"the filter '{node.name}' can't be used; there are {_listed(_FILTERS)}", node.lineno)
    if isinstance(node, nodes.Test) and node.name not in _TESTS:
        raise TemplateSyntaxError(f"the test '{node.name}' can't be used; there are {_listed(_TESTS)}", node.lineno)
    if isinstance(node, nodes.List | nodes.Tuple) and any(node.find_all((nodes.List, nodes.Tuple))):
        raise TemplateSyntaxError("a list can't hold a list in a message", node.lineno)
    if isinstance(node, nodes.For) and node.recursive:
        raise TemplateSyntaxError("a loop can't be recursive in a message", node.lineno)
    if isinstance(node, nodes.Name) and node.name.startswith("_"):
        raise TemplateSyntaxError(f"'{node.name}': a field can't begin with an underscore", node.lineno)
    if isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
        raise TemplateSyntaxError(f"'{node.attr}': a field can't begin with an underscore", node.lineno)
    if isinstance(node, nodes.CondExpr) and node.expr2 is None:
        node.expr2 = nodes.Const("", lineno=node.lineno)


def _listed(names: dict[str, Any]) -> str:
    return ", ".join(sorted(names))
