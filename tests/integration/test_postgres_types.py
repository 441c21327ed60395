"""Every type of column of PostgreSQL, in a snapshot and in the stream."""

from __future__ import annotations

from typing import Any

from capturing import as_json

ALL_TYPES = """
create table kinds (
  id int primary key, a int2, b int8, c float4, d float8, e bool, f numeric(12,3), g numeric, h money, i date, j time,
  k time(3), l timetz, m timestamp, n timestamp(3), o timestamptz, p interval, q bytea, r bit(1), s bit(12), t varbit,
  u uuid, v json, w jsonb, y inet, z cidr, aa macaddr, ab int4range, ac tstzrange, ad point, ae int[],
  af text[], ag numeric(6,2)[], ah timestamptz[], ai mood, aj mood[], ak positive, al oid, am varchar(9), an char(4),
  ao tsvector, ap bool[], aq uuid[], ar date[], as_ name, at_ "char"
)"""
ALL_VALUES = """
insert into kinds values (
  %d, -7, 1::int8 << 60, 1.5, 2.25, true, 1234.567, 0.00012, '$12.34', '0044-03-15 BC', '24:00', '01:02:03.004',
  '01:02:03.5+05:30', '2026-01-02 03:04:05.678901', '1969-12-31 23:59:59.999', 'infinity',
  '1 year 2 mons -3 days 04:05:06.7', '\\x00ff', '1', '101000000001', '1011',
  '6f2c1a7e-0000-4000-8000-000000000001', '{"a": 1}',
  '[1, 2]', '10.0.0.1/8', '10.0.0.0/8', '08:00:2b:01:02:03', '[1,5)', '[2026-01-01,)', '(1,2)',
  '{1,NULL,3}', '{"a,b",NULL,"c\\"d"}', '{1.5,2}', '{2026-01-02 03:04:05.5+00}', 'ok', '{ok,sad}', 5, 4294967295,
  'größe', 'ab', 'fat cat', '{t,f}', '{6f2c1a7e-0000-4000-8000-000000000001}', '{2026-01-02}', 'name', 'c'
)"""


def test_every_type_of_column_is_the_same_in_snapshot_and_stream(sql: Any, capture: Any) -> None:
    sql("create type mood as enum ('sad', 'ok')")
    sql("create domain positive as int check (value > 0)")
    sql(ALL_TYPES)
    sql(ALL_VALUES % 1)
    run = capture()
    (read,) = run.take(1)
    sql(ALL_VALUES % 2)
    (change,) = run.take(1)
    first, second = as_json(read)["after"], as_json(change)["after"]
    assert first | {"id": 2} == second
    assert None not in second.values()
    assert list(second) == [column.name for column in sql("select * from kinds").description], "none is left out"
    shown = {name: second[name] for name in ("f", "g", "h", "i", "j", "l", "o", "s", "ae", "af", "aj", "ak", "an")}
    assert shown == {
        "f": "EtaH",
        "g": {"scale": 5, "value": "DA=="},
        "h": "BNI=",
        "i": -735160,
        "j": 86_400_000_000,
        "l": "19:32:03.5Z",
        "o": "infinity",
        "s": "AQo=",
        "ae": [1, None, 3],
        "af": ["a,b", None, 'c"d'],
        "aj": ["ok", "sad"],
        "ak": 5,
        "an": "ab  ",
    }
