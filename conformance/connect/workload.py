"""A random workload for change capture, from a seed: column types, changed keys and schemas, large values, rollbacks.

Pure: it gives SQL, and runs none.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

Literal = Callable[[random.Random], str]
NULL_SHARE: Final = 0.15
LARGE_BYTES: Final = 9000  # stored aside, as its bytes cannot be compressed


def _text(chance: random.Random) -> str:
    letters = "abc äöü€漢😀'\\\"\n\t{},;"
    made = "".join(chance.choice(letters) for _ in range(chance.randrange(12)))
    return "E'" + made.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\t", "\\t") + "'"


def _large(chance: random.Random) -> str:
    return f"'{chance.randbytes(LARGE_BYTES // 2).hex()}'"


def _time(chance: random.Random) -> str:
    clock = f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}"
    return clock + chance.choice(["", ".5", ".123", ".123456", ".000001"])


def _date(chance: random.Random) -> str:
    return f"{chance.randrange(1, 4000):04}-{chance.randrange(1, 13):02}-{chance.randrange(1, 29):02}"


def _quoted(*choices: str) -> Literal:
    return lambda chance: "'" + chance.choice(choices).replace("'", "''") + "'"


def _number(digits: int, scale: int) -> Literal:
    return lambda chance: f"{chance.randrange(-(10**digits) + 1, 10**digits)}e-{scale}"


def _integer(bits: int) -> Literal:
    return lambda chance: str(chance.choice([0, 1, -1, (1 << bits) - 1, -(1 << bits), chance.randrange(1 << bits)]))


def _zone(chance: random.Random) -> str:
    return chance.choice(["+00", "+05:30", "-11", "+14"])


def _json(chance: random.Random) -> str:
    return chance.choice(['\'{"b": [1, 2.50, null], "a": "ü"}\'', "'[]'", "'\"x\"'", "'1e3'", '\'{"a":1, "a":2}\''])


def _moved(table: str, column: str, key: int, by: int, more: str = "") -> str:
    """A change of keys, unless the new key is taken."""
    taken = f"(select from {table} where {column} = {key + by})"
    return f"update {table} set {column} = {column} + {by}{more} where {column} = {key} and not exists {taken}"


TYPES: Final[tuple[tuple[str, str, Literal], ...]] = (
    ("t_int2", "int2", _integer(15)),
    ("t_int4", "int4", _integer(31)),
    ("t_int8", "int8", _integer(63)),
    ("t_float4", "float4", lambda c: c.choice(["0", "1.5", "-3.4e38", "1e-37", f"{c.random()}"])),
    ("t_float8", "float8", lambda c: c.choice(["0", "2.25", "1.7e308", "5e-324", f"{c.random()}"])),
    ("t_bool", "bool", _quoted("t", "f")),
    (
        "t_numeric",
        "numeric",
        lambda c: c.choice(["0", "1.50", "1e10", "-0.00012", f"{c.randrange(10**30)}.{c.randrange(99)}"]),
    ),
    ("t_numeric_scale", "numeric(12,3)", _number(12, 3)),
    ("t_numeric_whole", "numeric(18)", _number(18, 0)),
    ("t_money", "money", lambda c: f"'{c.randrange(-(10**6), 10**6)}.{c.randrange(100):02}'"),
    ("t_date", "date", lambda c: f"'{_date(c)}'"),
    ("t_time", "time", lambda c: f"'{_time(c)}'"),
    ("t_time3", "time(3)", lambda c: f"'{_time(c)}'"),
    ("t_timetz", "timetz", lambda c: f"'{_time(c)}{_zone(c)}'"),
    ("t_timestamp", "timestamp", lambda c: c.choice(["'-infinity'", f"'{_date(c)} {_time(c)}'"])),
    ("t_timestamp3", "timestamp(3)", lambda c: f"'{_date(c)} {_time(c)}'"),
    ("t_timestamp0", "timestamp(0)", lambda c: f"'{_date(c)} {_time(c)}'"),
    ("t_timestamptz3", "timestamptz(3)", lambda c: f"'{_date(c)} {_time(c)}{_zone(c)}'"),
    ("t_timestamptz0", "timestamptz(0)", lambda c: f"'{_date(c)} {_time(c)}{_zone(c)}'"),
    ("t_timestamptz", "timestamptz", lambda c: c.choice(["'infinity'", f"'{_date(c)} {_time(c)}{_zone(c)}'"])),
    (
        "t_interval",
        "interval",
        _quoted("1 day", "-1 year 2 mons", "3 days 04:05:06.7", "-00:00:01", "0", "1 year -1 day"),
    ),
    ("t_bytea", "bytea", lambda c: f"'\\x{c.randbytes(c.randrange(9)).hex()}'"),
    ("t_bit1", "bit(1)", _quoted("0", "1")),
    ("t_bit12", "bit(12)", lambda c: f"'{c.randrange(1 << 12):012b}'"),
    ("t_varbit", "varbit", _quoted("1", "1011", "000000001", "1111111100000000")),
    ("t_varbit9", "varbit(9)", _quoted("1", "1011", "000000001")),
    ("t_uuid", "uuid", lambda c: f"'{c.randbytes(16).hex()}'"),
    ("t_json", "json", _json),
    ("t_jsonb", "jsonb", _json),
    ("t_xml", "text", _text),
    ("t_inet", "inet", _quoted("10.0.0.1", "10.0.0.1/8", "::1", "2001:db8::/32")),
    ("t_cidr", "cidr", _quoted("10.0.0.0/8", "192.168.1.0/24")),
    ("t_macaddr", "macaddr", _quoted("08:00:2b:01:02:03", "08002b:010203")),
    ("t_macaddr8", "macaddr8", _quoted("08:00:2b:01:02:03:04:05")),
    ("t_int4range", "int4range", _quoted("[1,5)", "empty", "(,3]", "[7,7]")),
    ("t_int8range", "int8range", _quoted("[1,5)", "(,)")),
    ("t_numrange", "numrange", _quoted("[1.50,5)", "(,3.0]")),
    ("t_daterange", "daterange", _quoted("[2026-01-01,2026-02-01)", "[2026-01-01,)")),
    ("t_tsrange", "tsrange", _quoted("[2026-01-01 01:02:03.5,)")),
    ("t_tstzrange", "tstzrange", _quoted("[2026-01-01 01:02:03+00,2027-01-01 00:00:00+05)")),
    ("t_point", "point", _quoted("(1,2)", "(-1.5,1e10)")),
    ("t_varchar", "varchar(40)", _text),
    ("t_char", "char(20)", _text),
    ("t_text", "text", _text),
    ("t_enum", "mood", _quoted("sad", "ok", "it's fine")),
    ("t_domain", "positive", lambda c: str(c.randrange(1, 1000))),
    ("t_oid", "oid", _quoted("0", "4294967295")),
    ("t_tsvector", "tsvector", _quoted("fat cat", "a:1 b:2")),
    ("t_ints", "int4[]", _quoted("{1,NULL,-3}", "{}")),
    ("t_int8s", "int8[]", _quoted("{1,NULL,9223372036854775807}", "{}")),
    ("t_int2s", "int2[]", _quoted("{1,NULL}")),
    ("t_float8s", "float8[]", _quoted("{1.5,NULL,-2e10}")),
    ("t_float4s", "float4[]", _quoted("{1.5,NULL}")),
    ("t_texts", "text[]", _quoted('{"a,b",NULL,"c\\"d",""}', "{}", "{NULL}")),
    ("t_varchars", "varchar(9)[]", _quoted("{a,b}")),
    ("t_bools", "bool[]", _quoted("{t,f,NULL}")),
    ("t_numerics", "numeric(6,2)[]", _quoted("{1.5,2}", "{NULL}")),
    ("t_dates", "date[]", _quoted("{2026-01-02,NULL}")),
    ("t_timestamps", "timestamp[]", _quoted("{2026-01-02 03:04:05.678901}")),
    ("t_timestamptzs", "timestamptz[]", _quoted("{2026-01-02 03:04:05.5+00}")),
    ("t_uuids", "uuid[]", _quoted("{6f2c1a7e-0000-4000-8000-000000000001}")),
    ("t_jsonbs", "jsonb[]", _quoted('{"{\\"a\\": 1}"}')),
    ("t_enums", "mood[]", _quoted("{ok,sad}")),
)
DEFAULTS: Final = """create table defaults (
    id bigserial primary key, a int default 7, b text not null default 'it''s', c bool default true,
    d date default '2026-01-02', e timestamp default now(), f timestamptz not null default current_timestamp,
    g numeric(8,2) default 1.5, h numeric default 2, i uuid default gen_random_uuid(), j jsonb not null default '{}',
    k varchar(9) default 'x'::varchar, l float8 default 1.25, m mood default 'ok', n int[] default '{1}',
    o int2 default -1, p int8 not null default 9223372036854775807, q bytea default 'a', r char(3) default 'z',
    s bit(3) default B'101', t time default '01:02', u int default 1 + 1, v text default null, w positive default 3,
    x bit(1) default B'1')"""
STRICT: Final = """create table strict (
    id int primary key, n int not null, t text not null, b bool not null, d date not null, z timestamptz not null,
    u uuid not null, m numeric(8,2) not null, j jsonb not null, a int[] not null)"""
SCHEMA: Final = (
    "create type mood as enum ('sad', 'ok', 'it''s fine')",
    "create domain positive as int check (value > 0)",
    f"create table kinds (id int primary key, {', '.join(f'{name} {kind}' for name, kind, _ in TYPES)})",
    f"create table wholes (id int primary key, {', '.join(f'{name} {kind}' for name, kind, _ in TYPES)})",
    "alter table wholes replica identity full",
    "create table pairs (region varchar(20), number int, note text, large text, primary key (number, region))",
    "alter table pairs alter column large set storage external",
    "create table larges (id bigint primary key, a text, b bytea, c jsonb, d int[], e text not null default 'x')",
    "alter table larges alter column a set storage external, alter column b set storage external",
    "create table largest (id serial primary key, n int,a text[], b uuid[], c int8[], d bytea[], e float8[], f date[])",
    DEFAULTS,
    "create table keyless (a int, b text)",
    "alter table keyless replica identity full",
    STRICT,
    "create table evolving (id int primary key, a int, b text)",
    "create table marker (id int primary key, note text)",
)
TABLES: Final = ("defaults", "largest", "kinds", "wholes", "pairs", "larges", "keyless", "strict", "evolving", "marker")
EVOLUTIONS: Final = (
    "alter table evolving add column c{n} varchar(10)",
    "alter table evolving add column c{n} int not null default 7",
    "alter table evolving rename column b to b{n}",
    "alter table evolving drop column b{n}; alter table evolving add column b text",
    "alter table evolving alter column a type bigint",
    "alter table evolving alter column a type numeric(10,2)",
    "alter table evolving alter column a type int using a::int",
)


class Workload:
    """Transactions of SQL, and whether each is committed."""

    def __init__(self, seed: int, *, with_infinity: bool = True) -> None:
        self._chance = random.Random(seed)
        self._with_infinity = with_infinity
        self._evolved = 0
        self._evolution = -1

    def first_rows(self) -> list[str]:
        """Return the statements that fill the tables before the snapshot."""
        made = [self._row("kinds", TYPES, key) for key in range(8)]
        made += [self._row("wholes", TYPES, key) for key in range(4)]
        made += ["insert into kinds (id) values (100), (101)", "insert into keyless values (1, 'a'), (2, null)"]
        made += [self._pair(key) for key in range(5)]
        made += [self._large(key) for key in range(4)]
        made += [self._strict(key) for key in range(3)]
        made += [
            "insert into defaults default values",
            "insert into defaults (a, b, c, m) values (null, '', null, null)",
        ]
        made += [self._largest() for _ in range(2)]
        return [
            *made,
            "insert into evolving values (1, 1, 'x'), (2, null, null)",
            "insert into marker values (0, 'first')",
        ]

    def transactions(self, count: int) -> Iterator[tuple[list[str], bool]]:
        """Yield transactions: statements, and whether they are committed."""
        for _ in range(count):
            statements = [self._statement() for _ in range(self._chance.choice([1, 1, 2, 5]))]
            if self._chance.random() < 0.1:
                statements.insert(1, "savepoint half")
                statements += [self._statement(), "rollback to savepoint half"]
            yield statements, self._chance.random() > 0.12
            if self._chance.random() < 0.05 and self._evolution + 1 < len(EVOLUTIONS):
                self._evolution += 1
                if not EVOLUTIONS[self._evolution].startswith("alter table evolving drop"):
                    self._evolved += 1
                yield EVOLUTIONS[self._evolution].format(n=self._evolved).split("; "), True

    def _statement(self) -> str:
        chance = self._chance
        makers = (
            *(self._kinds,) * 6, *(self._pairs,) * 4, *(self._larges,) * 4, *(self._keyless,) * 2, self._stricts,
            self._defaults, self._largests,
            *(self._evolving,) * 3, lambda: f"truncate {chance.choice(['keyless', 'pairs', 'keyless, strict'])}",
        )  # fmt: skip
        return chance.choice(makers)() if chance.random() > 0.02 else "truncate keyless"

    def _literal(self, make: Literal) -> str:
        made = "null" if self._chance.random() < NULL_SHARE else make(self._chance)
        return "null" if "infinity" in made and not self._with_infinity else made

    def _row(self, table: str, types: tuple[tuple[str, str, Literal], ...], key: int) -> str:
        values = ", ".join(self._literal(make) for _, _, make in types)
        return f"insert into {table} values ({key}, {values}) on conflict (id) do nothing"

    def _kinds(self) -> str:
        chance, table, key = self._chance, self._chance.choice(["kinds", "wholes"]), self._chance.randrange(20)
        match chance.randrange(5):
            case 0 | 1:
                return self._row(table, TYPES, key)
            case 2:
                return f"delete from {table} where id = {key}"
            case 3:
                return _moved(table, "id", key, 1000)
        sets = ", ".join(f"{name} = {self._literal(make)}" for name, _, make in chance.sample(TYPES, 3))
        return f"update {table} set {sets} where id between {key} and {key + 3}"

    def _pair(self, key: int) -> str:
        values = f"{_quoted('eu', 'us')(self._chance)}, {key}, {_text(self._chance)}, {_large(self._chance)}"
        return f"insert into pairs values ({values}) on conflict do nothing"

    def _pairs(self) -> str:
        key = self._chance.randrange(12)
        match self._chance.randrange(5):
            case 0 | 1:
                return self._pair(key)
            case 2:
                return f"delete from pairs where number = {key}"
            case 3:
                return f"update pairs set note = {self._literal(_text)} where number = {key}"
        return _moved("pairs", "number", key, 50, ", note = 'moved'")

    def _large(self, key: int) -> str:
        numbers = ",".join(str(self._chance.randrange(1 << 30)) for _ in range(3000))
        json = f'\'{{"x": "{self._chance.randbytes(3000).hex()}"}}\''
        binary = f"'\\x{self._chance.randbytes(6000).hex()}'"
        values = f"{key}, {_large(self._chance)}, {binary}, {json}, '{{{numbers}}}', {_text(self._chance)}"
        return f"insert into larges values ({values}) on conflict do nothing"

    def _larges(self) -> str:
        key = self._chance.randrange(8)
        match self._chance.randrange(6):
            case 0 | 1:
                return self._large(key)
            case 2:
                return f"delete from larges where id = {key}"
            case 3:
                return f"update larges set a = {_large(self._chance)} where id = {key}"
            case 4:
                return _moved("larges", "id", key, 100)
        return f"update larges set e = {_text(self._chance)} where id = {key}"

    def _largest(self) -> str:
        parts = [
            ",".join(self._chance.randbytes(20).hex() for _ in range(400)),
            ",".join(self._chance.randbytes(16).hex() for _ in range(400)),
            ",".join(str(self._chance.randrange(1 << 62)) for _ in range(1500)),
            ",".join(f'"\\\\x{self._chance.randbytes(90).hex()}"' for _ in range(90)),
            ",".join(str(self._chance.random()) for _ in range(1500)),
            ",".join(f"2{_date(self._chance)[1:]}" for _ in range(4000)),
        ]
        values = ", ".join("'{" + part + "}'" for part in parts)
        return f"insert into largest (a, b, c, d, e, f, n) values ({values}, {self._chance.randrange(5)})"

    def _largests(self) -> str:
        key = self._chance.randrange(1, 5)
        return self._chance.choice(
            [self._largest(), f"update largest set n = 9 where id = {key}", f"delete from largest where id = {key}"]
        )

    def _defaults(self) -> str:
        key = self._chance.randrange(1, 6)
        return self._chance.choice(
            [
                "insert into defaults default values",
                f"update defaults set a = null, c = null, g = null where id = {key}",
                f"delete from defaults where id = {key}",
            ]
        )

    def _keyless(self) -> str:
        key = self._chance.randrange(5)
        return self._chance.choice(
            [
                f"insert into keyless values ({key}, {self._literal(_text)})",
                f"update keyless set b = {self._literal(_text)} where a = {key}",
                f"delete from keyless where a = {key}",
            ]
        )

    def _strict(self, key: int) -> str:
        return (
            f"insert into strict values ({key}, {key}, {_text(self._chance)}, true, '2026-01-02',"
            f" '2026-01-02 03:04:05+01', '{self._chance.randbytes(16).hex()}', 1.5, '{{}}', '{{1}}')"
            " on conflict do nothing"
        )

    def _stricts(self) -> str:
        key = self._chance.randrange(6)
        change = _moved("strict", "id", key, 10)
        return self._chance.choice([self._strict(key), f"delete from strict where id = {key}", change])

    def _evolving(self) -> str:
        key = self._chance.randrange(8)
        return self._chance.choice(
            [
                f"insert into evolving (id, a) values ({key}, {self._chance.randrange(100)}) on conflict do nothing",
                f"update evolving set a = {self._chance.randrange(100)} where id = {key}",
                f"delete from evolving where id = {key}",
            ]
        )
