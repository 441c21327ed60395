"""A small expression language, CEL's common part: what ``consume --filter`` asks of each record.

``compile_expression`` turns a text into a function of a record's fields; it reads no record itself. Members of a text
are read from the JSON that it holds; a text beside a number is read as a number; what is missing is null, and null is
neither less nor more than anything.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.client.errors import InvalidExpression
from barnabas.client.scan.needles import Needle, both, either, equal_to, part_of
from barnabas.client.scan.patterns import compile_pattern
from barnabas.client.scan.times import parse_time_ms

HELP: Final = (
    "an expression that must hold, such as 'value.total > 100 && headers.region == \"eu\"'; there are topic, "
    "partition, offset, timestamp (ms), key, value, headers; == != < <= > >= && || ! + - * / %% in; size(), has(), "
    "int(), double(), string(), timestamp(); .contains() .startsWith() .endsWith() .matches()"
)
DEPTH_MAX: Final = 100

Fields: TypeAlias = Mapping[str, Any]
Node: TypeAlias = Callable[[Fields], Any]

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>\d+\.\d+(?:[eE][+-]?\d+)?|\d+)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<text>\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*')|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%<>!()\[\],.]))"
)
_ORDERS: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_SUMS: Final = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "%": operator.mod}


class Token(NamedTuple):
    kind: str
    text: str
    position: int


class Expression(NamedTuple):
    holds: Callable[[Fields], bool]
    needles: frozenset[Needle]  # bytes that every record for which it holds contains


def compile_expression(text: str) -> Expression:
    """Raises InvalidExpression for a text that is not understood."""
    parser = _Parser(text)
    node = parser.either()
    parser.expect_end()
    return Expression(lambda fields: bool(node(fields)), _needles(node))


def _tokens(text: str) -> list[Token]:
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise InvalidExpression(f"{text[position:].strip()!r} is not understood")
        found.append(Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup)))
        position = match.end()
    return [*found, Token("end", "", len(text))]


class _Parser:
    """By recursive descent; a method for each level of precedence, loosest first."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._next = 0
        self._depth = 0

    def expect_end(self) -> None:
        if self._peek().kind != "end":
            raise self._wrong(f"{self._peek().text!r} was not expected")

    def either(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise self._wrong("too many parentheses")
        left = self._both()
        while self._take("||"):
            left = _or(left, self._both())
        self._depth -= 1
        return left

    def _both(self) -> Node:
        left = self._compared()
        while self._take("&&"):
            left = _and(left, self._compared())
        return left

    def _compared(self) -> Node:
        left = self._sum()
        token = self._peek()
        if token.kind == "name" and token.text == "in":
            self._next += 1
            return _contained(left, self._sum())
        for sign in ("==", "!=", "<=", ">=", "<", ">"):
            if self._take(sign):
                return _comparison(sign, left, self._sum())
        return left

    def _sum(self) -> Node:
        left = self._product()
        while sign := self._take("+", "-"):
            left = _arithmetic(sign, left, self._product())
        return left

    def _product(self) -> Node:
        left = self._signed()
        while sign := self._take("*", "/", "%"):
            left = _arithmetic(sign, left, self._signed())
        return left

    def _signed(self) -> Node:
        negations = 0
        while self._take("!"):
            negations += 1
        node = _arithmetic("-", _zero, self._member()) if self._take("-") else self._member()
        if negations:
            return (lambda fields: not node(fields)) if negations % 2 else (lambda fields: bool(node(fields)))
        return node

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._take("."):
                name = self._expect("name").text
                node = self._method(node, name) if self._take("(") else _member(node, _constant(name))
            elif self._take("["):
                index = self.either()
                self._require("]")
                node = _member(node, index)
            else:
                return node

    def _primary(self) -> Node:
        token = self._peek()
        self._next += 1
        if token.kind == "number":
            return _constant(int(token.text) if token.text.isdigit() else float(token.text))
        if token.kind == "text":
            return _constant(_unquoted(token.text))
        if token.kind == "name":
            return self._named(token)
        if token.text == "(":
            node = self.either()
            self._require(")")
            return node
        if token.text == "[":
            items = self._arguments("]")
            return lambda fields: [item(fields) for item in items]
        raise self._wrong("something is missing" if token.kind == "end" else f"{token.text!r} was not expected", token)

    def _named(self, token: Token) -> Node:
        if token.text in _CONSTANTS:
            return _constant(_CONSTANTS[token.text])
        if self._take("("):
            function, arguments = _FUNCTIONS.get(token.text), self._arguments(")")
            if function is None or len(arguments) != 1:
                raise self._wrong(f"{token.text}() is none of {', '.join(_FUNCTIONS)}, with one argument", token)
            (argument,) = arguments
            return lambda fields: function(argument(fields))
        if token.text not in NAMES:
            raise self._wrong(f"there is no {token.text!r}, only {', '.join(NAMES)}", token)
        name = token.text
        return _about(lambda fields: fields[name], name)

    def _method(self, node: Node, name: str) -> Node:
        method, arguments = _METHODS.get(name), self._arguments(")")
        if method is None or len(arguments) != 1:
            raise self._wrong(f".{name}() is none of {', '.join(_METHODS)}, with one argument")
        (argument,) = arguments
        found: Node = lambda fields: method(_text(node(fields)), _text(argument(fields)))  # noqa: E731
        if name != "matches":
            _mark(found, part_of(_subject(node), _known(argument)))
        return found

    def _arguments(self, end: str) -> list[Node]:
        found: list[Node] = []
        if self._take(end):
            return found
        while True:
            found.append(self.either())
            if self._take(end):
                return found
            self._require(",")

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take(self, *signs: str) -> str:
        token = self._peek()
        if token.kind == "sign" and token.text in signs:
            self._next += 1
            return token.text
        return ""

    def _require(self, sign: str) -> None:
        if not self._take(sign):
            raise self._wrong(f"{sign!r} is missing")

    def _expect(self, kind: str) -> Token:
        token = self._peek()
        if token.kind != kind:
            raise self._wrong(f"a {kind} is missing")
        self._next += 1
        return token

    def _wrong(self, reason: str, token: Token | None = None) -> InvalidExpression:
        where = (token or self._peek()).position
        return InvalidExpression(f"{self._text!r}, at {where}: {reason}")


def _mark(node: Node, needles: frozenset[Needle]) -> Node:
    node.needles = needles  # type: ignore[attr-defined]
    return node


def _needles(node: Node) -> frozenset[Needle]:
    found: frozenset[Needle] = getattr(node, "needles", frozenset())
    return found


def _about(node: Node, subject: str) -> Node:
    """Remember which field a node reads: ``key``, ``value``, or a member of one, such as ``value.``."""
    node.subject = subject  # type: ignore[attr-defined]
    return node


def _subject(node: Node) -> str:
    return getattr(node, "subject", "")


def _known(node: Node) -> Any:
    """The value of a constant, None for everything else."""
    return getattr(node, "constant", None)


def _constant(value: Any) -> Node:
    def node(_: Fields) -> Any:
        return value

    node.constant = value  # type: ignore[attr-defined]
    return node


def _zero(_: Fields) -> int:
    return 0


def _or(left: Node, right: Node) -> Node:
    needles = either(_needles(left), _needles(right))
    return _mark(lambda fields: bool(left(fields)) or bool(right(fields)), needles)


def _and(left: Node, right: Node) -> Node:
    needles = both(_needles(left), _needles(right))
    return _mark(lambda fields: bool(left(fields)) and bool(right(fields)), needles)


def _comparison(sign: str, left: Node, right: Node) -> Node:
    if sign in ("==", "!="):
        wanted = sign == "=="
        compared: Node = lambda fields: _equal(left(fields), right(fields)) is wanted  # noqa: E731
        if wanted:
            needles = equal_to(_subject(left), _known(right)) | equal_to(_subject(right), _known(left))
            _mark(compared, needles)
        return compared
    order = _ORDERS[sign]

    def compare(fields: Fields) -> bool:
        one, other = _alike(left(fields), right(fields))
        try:
            return bool(order(one, other))
        except TypeError:
            return False  # two things of different kinds have no order

    return compare


def _equal(one: Any, other: Any) -> bool:
    one, other = _alike(one, other)
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def _alike(one: Any, other: Any) -> tuple[Any, Any]:
    """A text beside a number is read as one, if it is one."""
    if isinstance(one, str) and _is_number(other):
        return _number(one, one), other
    if isinstance(other, str) and _is_number(one):
        return one, _number(other, other)
    return one, other


def _arithmetic(sign: str, left: Node, right: Node) -> Node:
    calculate = _SUMS[sign]

    def value(fields: Fields) -> Any:
        one, other = _alike(left(fields), right(fields))
        try:
            return calculate(one, other)
        except (TypeError, ZeroDivisionError):
            return None

    return value


def _contained(item: Node, container: Node) -> Node:
    def value(fields: Fields) -> bool:
        wanted, found = item(fields), _opened(container(fields))
        return isinstance(found, dict | list) and any(_equal(wanted, each) for each in found)

    return value


def _member(node: Node, key: Node) -> Node:
    def value(fields: Fields) -> Any:
        whole, name = _opened(node(fields)), key(fields)
        if isinstance(whole, dict):
            return whole.get(name)
        if isinstance(whole, list) and isinstance(name, int) and 0 <= name < len(whole):
            return whole[name]
        return None

    return _about(value, f"{_subject(node)}." if _subject(node) else "")


def _opened(value: Any) -> Any:
    """What a text holds if it is JSON."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return None


def _text(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any, otherwise: Any = None) -> Any:
    try:
        return int(value) if not isinstance(value, str) or value.strip().lstrip("+-").isdigit() else float(value)
    except (TypeError, ValueError):
        return otherwise


def _moment(value: Any) -> int | None:
    return parse_time_ms(value) if isinstance(value, str) else None


def _matches(text: str, pattern: str) -> bool:
    return compile_pattern(pattern).search(text) is not None


def _unquoted(text: str) -> str:
    inner = text[1:-1]
    return re.sub(r"\\(.)", lambda found: {"n": "\n", "t": "\t", "r": "\r"}.get(found[1], found[1]), inner)


NAMES: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_CONSTANTS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_FUNCTIONS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "size": lambda value: 0 if value is None else len(value) if isinstance(value, str | dict | list) else None,
    "has": lambda value: value is not None,
    "int": lambda value: None if (number := _number(value)) is None else int(number),
    "double": lambda value: None if (number := _number(value)) is None else float(number),
    "string": _text,
    "timestamp": _moment,
}
_METHODS: Final[Mapping[str, Callable[[str, str], bool]]] = {
    "contains": lambda text, part: part in text,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "matches": _matches,
}
