"""What a serde is: two functions between an object and bytes, and what they may say instead of answering.

Nulls never reach a serde: a key or value of None is a null in the record, both ways. The producer and the consumer
call serdes; the kinds of them are the modules beside this one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple

from barnabas.client.errors import MissingDependency, Undecodable, Unencodable

# A client without serdes is one of bytes: type checkers know defaults of type variables, Python does from 3.13 on.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from barnabas.client.produce.batch import Headers

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
    T = TypeVar("T")
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")
    T = TypeVar("T")

__all__ = ["K", "NotReady", "Place", "Serde", "T", "Undecodable", "Unencodable", "V", "needed"]

_SHOWN_BYTES_MAX: Final = 40


class Place(NamedTuple):
    """What is being encoded or decoded: the keys or the values of a topic."""

    topic: str
    is_key: bool = False

    def __str__(self) -> str:
        return f"{'key' if self.is_key else 'value'} of {self.topic}"


class NotReady(Exception):
    """The serde must ask somebody first: await :meth:`wait`, then call it again."""

    def __init__(self, wait: Callable[[], Awaitable[object]]) -> None:
        super().__init__("the serde has to ask for a schema first")
        self.wait = wait


class Serde(ABC, Generic[T]):
    @abstractmethod
    def encode(self, content: T, place: Place) -> bytes:
        """The bytes; :class:`Unencodable` if there are none for this object."""

    @abstractmethod
    def decode(self, data: bytes, place: Place) -> T:
        """The object; :class:`Undecodable` if the bytes are not one."""

    def headers(self, place: Place) -> tuple[tuple[str, bytes], ...]:
        """Headers that a record gets beside the bytes that :meth:`encode` has returned."""
        return ()

    def decode_record(self, data: bytes, place: Place, headers: Headers) -> T:
        """As :meth:`decode`, for serdes whose records have something in their headers."""
        return self.decode(data, place)


def undecodable(data: bytes, place: Place, error: object) -> Undecodable:
    shown = data[:_SHOWN_BYTES_MAX]
    return Undecodable(f"{place}: {error} (in {shown!r}{'…' if len(data) > _SHOWN_BYTES_MAX else ''})")


def unencodable(content: object, place: Place, error: object) -> Unencodable:
    return Unencodable(f"{place}: a {type(content).__name__} cannot be encoded: {error}")


def needed(module: str, extra: str) -> Any:
    """An optional dependency, or the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingDependency(f"this needs {module}: pip install 'barnabas[{extra}]'") from error
