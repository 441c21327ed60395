"""The decoder of pgoutput: messages that a server has sent, and bytes that no server would send."""

from __future__ import annotations

import pickle
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.connectors.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Change,
    Commit,
    Decoder,
    LogicalMessage,
    ProtocolError,
    Relation,
    TransactionOrigin,
    Truncate,
    lsn_of,
    lsn_text,
)

# Recorded from PostgreSQL 18.4: create table t (id int primary key, v text), then one change of each kind.
RELATION = bytes.fromhex("52000040007075626c69630074006400020169640000000017ffffffff00760000000019ffffffff")
BEGIN = bytes.fromhex("4200000000016f267000030381f61aa52e000002f3")
COMMIT = bytes.fromhex("430000000000016f267000000000016f26a000030381f61aa52e")
INSERT = bytes.fromhex("49000040004e0002740000000131740000000161")
UPDATE_OF_KEY = bytes.fromhex("55000040004b00027400000001316e4e0002740000000132740000000161")
UPDATE_TOAST = bytes.fromhex("55000040004e000274000000013275")
DELETE_FULL = bytes.fromhex("44000040004f0002740000000132740000000162")
TRUNCATE = bytes.fromhex("54000000010000004000")
MESSAGES = (RELATION, BEGIN, COMMIT, INSERT, UPDATE_OF_KEY, UPDATE_TOAST, DELETE_FULL, TRUNCATE)


def decoder() -> Decoder:
    made = Decoder()
    made.decode(RELATION)
    return made


def test_a_relation_has_its_columns_and_their_types() -> None:
    relation = Decoder().decode(RELATION)
    assert isinstance(relation, Relation)
    assert (relation.oid, relation.schema, relation.table, relation.identity) == (16384, "public", "t", "d")
    assert [(column.name, column.type_oid, column.is_key) for column in relation.columns] == [
        ("id", 23, True),
        ("v", 25, False),
    ]


def test_begin_and_commit_have_positions_and_times() -> None:
    begin, commit = Decoder().decode(BEGIN), Decoder().decode(COMMIT)
    assert isinstance(begin, Begin)
    assert isinstance(commit, Commit)
    assert (begin.commit_lsn, begin.xid) == (0x16F2670, 755)
    assert (commit.commit_lsn, commit.end_lsn) == (0x16F2670, 0x16F26A0)
    assert begin.time_us == commit.time_us
    assert 1_700_000_000_000_000 < begin.time_us < 2_000_000_000_000_000


def test_changes_have_old_and_new_rows() -> None:
    known = decoder()
    relation = known.relations[16384]
    assert known.decode(INSERT) == Change("c", relation, None, (b"1", b"a"))
    assert known.decode(UPDATE_OF_KEY) == Change("u", relation, (b"1", None), (b"2", b"a"))
    assert known.decode(UPDATE_TOAST) == Change("u", relation, None, (b"2", UNCHANGED))
    assert known.decode(DELETE_FULL) == Change("d", relation, (b"2", b"b"), None, True)


def test_a_truncate_names_its_tables() -> None:
    known = decoder()
    assert known.decode(TRUNCATE) == Truncate((known.relations[16384],))


def test_types_are_ignored_and_origins_and_messages_are_read() -> None:
    assert Decoder().decode(b"Y" + bytes(4)) is None
    assert Decoder().decode(b"O" + (7).to_bytes(8, "big") + b"here\0") == TransactionOrigin(7, "here")
    data = b"M\1" + (7).to_bytes(8, "big") + b"app\0" + (3).to_bytes(4, "big") + b"abc"
    assert Decoder().decode(data) == LogicalMessage(True, 7, "app", b"abc")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"?",
        b"I" + (16384).to_bytes(4, "big") + b"X",
        b"I" + (1).to_bytes(4, "big") + b"N\0\0",  # a table that was never described
        INSERT + b"more",
        INSERT[:11] + b"\xff\xff\xff\xff" + INSERT[15:],  # a value longer than the message
        INSERT.replace(b"t", b"z", 1),
        RELATION[:20],
        b"R" + bytes(4) + b"no end",
        b"T\xff\xff\xff\xff\0",
        b"M\1" + bytes(8) + b"app\0\0\0\0\x09abc",
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decoder().decode(data)


@given(st.sampled_from(MESSAGES), st.data())
def test_whatever_is_changed_in_a_message_gives_a_message_or_an_error(message: bytes, data: st.DataObject) -> None:
    changed = bytearray(message)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(changed[: data.draw(st.integers(0, len(changed)))])
    with suppress(ProtocolError):
        decoder().decode(cut)


def test_positions_are_written_as_the_server_writes_them() -> None:
    assert lsn_text(0x16_B374D848) == "16/B374D848"
    assert lsn_of("16/B374D848") == 0x16_B374D848


def test_the_unchanged_value_stays_the_same_object_between_processes() -> None:
    assert pickle.loads(pickle.dumps((UNCHANGED,)))[0] is UNCHANGED
