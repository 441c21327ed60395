"""Settings that are declared once: as the fields of a typed, frozen object, with Kafka's name, range, default and text.

    class QuotaSettings(Declared):
        windows: int = named("quota.window.num", Kind.INT, 11, "Number of windows of a client's rate.", minimum=1)

``QuotaSettings.table()`` has the setting, and ``QuotaSettings.of_values(values)`` its value. What a setting is, and how
text becomes a value, is in ``model/settings.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final, Self

from barnabas.model.settings import Kind, Setting, SettingTable

_SETTING: Final = "setting"
_CONVERT: Final = "convert"


def named(
    name: str, kind: Kind, default: Any, doc: str, *, convert: Callable[[Any], Any] | None = None, **limits: Any
) -> Any:
    """Declare a field of a :class:`Declared` class and its setting.

    ``convert`` makes the field's value from the setting's, where they differ: milliseconds from seconds, for example.
    """
    setting = Setting(name=name, kind=kind, default=default, doc=doc, **limits)
    metadata = {_SETTING: setting, _CONVERT: convert}
    if convert is None:
        return field(default=default, repr=not setting.sensitive, metadata=metadata)
    return field(default_factory=lambda: convert(default), repr=not setting.sensitive, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """Base class of settings objects. Fields that :func:`named` did not make have no setting."""

    @classmethod
    def table(cls) -> SettingTable:
        """Return the settings of the fields, in their order."""
        return SettingTable(each.metadata[_SETTING] for each in fields(cls) if _SETTING in each.metadata)

    @classmethod
    def of_values(cls, values: Mapping[str, Any], **others: Any) -> Self:
        """Return an object with parsed values, by the names of their settings. Missing ones have their default.

        ``others`` are the fields without a setting, and those whose value is decided by the caller.
        """
        found = dict(others)
        for each in fields(cls):
            setting: Setting | None = each.metadata.get(_SETTING)
            if setting is not None and each.name not in others and setting.name in values:
                value, convert = values[setting.name], each.metadata[_CONVERT]
                found[each.name] = value if convert is None else convert(value)
        return cls(**found)
