"""Rules of a file decide which user may do what with which subjects."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.model.settings import InvalidSetting
from barnabas.registry.names import context_name, is_valid, normal, parse
from barnabas.registry.permissions import Permissions
from barnabas.rest.errors import RestError

RULES = """
[[allow]]
users = ["ann"]
subjects = ["orders-*"]
operations = ["read", "write"]

[[allow]]
users = ["root"]
subjects = ["*"]
operations = ["read", "write", "delete", "configure"]

[[allow]]
users = ["*"]
subjects = ["public-*"]
operations = ["read"]
"""


def test_rules_are_applied(tmp_path: Path) -> None:
    path = tmp_path / "permissions.toml"
    path.write_text(RULES)
    permissions = Permissions.read(path)
    assert permissions.allows("ann", "write", "orders-value")
    assert not permissions.allows("ann", "delete", "orders-value")
    assert not permissions.allows("ann", "read", "secrets-value")
    assert not permissions.allows("ann", "configure", None)
    assert permissions.allows("root", "configure", None)
    assert permissions.allows(None, "read", "public-value")
    with pytest.raises(RestError) as refused:
        permissions.check("ann", "delete", "orders-value")
    assert (refused.value.status, refused.value.code) == (403, 40301)
    assert Permissions().allows(None, "delete", None)


@pytest.mark.parametrize("text", ["[[allow]", "[[allow]]\nusers=1", RULES.replace('"delete"', '"destroy"')])
def test_a_bad_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "permissions.toml"
    path.write_text(text)
    with pytest.raises(InvalidSetting, match=r"permissions\.toml"):
        Permissions.read(path)


def test_names_of_subjects() -> None:
    assert parse(":.c:a") == (".c", "a")
    assert parse(":.c:") == parse(":.c") == (".c", "")
    assert normal(":.:a") == "a"
    assert normal("a", context=".c") == ":.c:a"
    assert normal("../../etc/passwd") == "../../etc/passwd", "a name is a name, not a path"
    assert context_name("c") == context_name(":.c:") == ".c"
    assert is_valid("a/b c")
    assert not any(map(is_valid, ["", "a\n", "__GLOBAL", ":.c:", ":*:a", "x" * 2000]))
    assert is_valid(":.c:", allows_context=True)
