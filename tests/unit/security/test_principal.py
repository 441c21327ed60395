"""Names of principals, from certificates as RFC 2253 writes them and through mapping rules."""

from __future__ import annotations

import pytest

from barnabas.model.settings import InvalidSetting
from barnabas.security.principal import (
    MappingRules,
    NoRuleMatches,
    Principal,
    distinguished_name,
    parse_principal,
)

SUBJECT = ((("countryName", "DE"),), (("organizationName", "Test"),), (("commonName", "alice"),))


def test_a_subject_is_written_most_specific_first() -> None:
    assert distinguished_name(SUBJECT) == "CN=alice,O=Test,C=DE"


def test_special_characters_are_escaped_and_unknown_attributes_encoded() -> None:
    assert distinguished_name(((("commonName", 'a,b+"c" <d>'),),)) == 'CN=a\\,b\\+\\"c\\" \\<d\\>'
    assert distinguished_name(((("commonName", "#x "),),)) == "CN=\\#x\\ "
    assert distinguished_name(((("emailAddress", "a@b"),),)) == "1.2.840.113549.1.9.1=#1603614062"


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", "CN=alice,O=Test,C=DE"),
        ("RULE:^CN=(.*?),O=(.*?),.*$/$1@$2/", "alice@Test"),
        ("RULE:^CN=(.*?),.*$/$1/U,DEFAULT", "ALICE"),
        ("RULE:^OU=.*$/nobody/, RULE:^.*O=(\\w+).*$/$1/L", "test"),
        ("RULE:^OU=.*$/nobody/,DEFAULT", "CN=alice,O=Test,C=DE"),
    ],
)
def test_the_first_rule_that_matches_names_the_principal(rules: str, name: str) -> None:
    assert MappingRules(rules).name(distinguished_name(SUBJECT)) == name


def test_a_subject_that_no_rule_knows_has_no_name() -> None:
    with pytest.raises(NoRuleMatches):
        MappingRules("RULE:^OU=(.*)$/$1/").name("CN=alice")


@pytest.mark.parametrize("rules", ["", "RULE:", "RULE:a/b", "RULE:(/x/", "DEFAULTS", "alice"])
def test_a_rule_that_is_none_is_refused(rules: str) -> None:
    with pytest.raises(InvalidSetting):
        MappingRules(rules)


def test_a_principal_is_read_and_written() -> None:
    assert parse_principal("User:CN=a:b") == Principal("User", "CN=a:b")
    assert str(Principal("User", "alice")) == "User:alice"
    with pytest.raises(InvalidSetting):
        parse_principal("alice")
