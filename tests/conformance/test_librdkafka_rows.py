"""What librdkafka's runner prints becomes verdicts, by the exact names of its tests."""

from __future__ import annotations

from pathlib import Path

from conformance.librdkafka_runner import is_hollow, rows
from conformance.outcome import Verdict
from conformance.suites.librdkafka import _broker_tests

PRINTED = """\
[0045_subscribe_update       /  0.000s] ================= Test 0045_subscribe_update PASSED =================
| 0045_subscribe_update                    |     PASSED |   0.000s |
| 0103_transactions_local                  |    SKIPPED |   0.000s | Filtered due to negative test flags
| 0103_transactions                        |     FAILED |   3.100s | do_test():84: expected no error
| 0082_fetch_max_bytes                     |    SKIPPED |   0.000s | Test skipped due to quick mode
"""
HANGING = "[0045_regex  / 12.500s] ================= Test 0045_regex PASSED =================\n[0045_next / 0.1s] …"
CRASHED = """\
### Test "0103_transactions (do_test_basic:130: with compression)" failed at test.c:5370:create_topic() at 21:50: ###
Test assertion failed: no place for 3 replicas
[<MAIN>                      /  2.209s] 4 thread(s) in use by librdkafka
### Test "<MAIN>" failed at test.c:1950:test_wait_exit() at 21:50: ###
4 thread(s) still active in librdkafka
"""
TABLE = """\
struct test tests[] = {
    {.name = "<MAIN>", .flags = TEST_F_LOCAL},
    _TEST(0004_conf, TEST_F_LOCAL),
    _TEST(0005_order, 0),
    _TEST(0011_produce_batch,
          0,
          /* Produces a lot of messages */
          _THRES(.ucpu = 40.0, .scpu = 8.0)),
    _TEST(0107_topic_recreate, 0, TEST_BRKVER_TOPIC_ADMINAPI, .scenario = "noautocreate"),
#if WITH_SOCKEM
    _TEST(0049_consume_conn_close, TEST_F_SOCKEM, TEST_BRKVER(0, 9, 0, 0)),
#endif
    _TEST(0047_partial_buf_tmout, TEST_F_KNOWN_ISSUE),
    _TEST(0055_producer_latency, TEST_F_KNOWN_ISSUE_WIN32),
    {NULL}};
"""


def test_rows_are_matched_by_their_exact_names() -> None:
    found = {row.test: row for row in rows(PRINTED)}
    assert found["0103_transactions"].verdict is Verdict.FAIL
    assert found["0103_transactions"].reason == "do_test():84: expected no error"
    assert found["0103_transactions_local"].verdict is Verdict.SKIP


def test_a_test_that_finished_before_a_hang_keeps_its_verdict() -> None:
    (row,) = rows(HANGING)
    assert (row.test, row.verdict, row.seconds) == ("0045_regex", Verdict.PASS, 12.5)


def test_a_test_that_took_the_runner_with_it_says_why_it_failed() -> None:
    (row,) = rows(CRASHED)
    reason = "Test assertion failed: no place for 3 replicas"
    assert (row.test, row.verdict, row.reason) == ("0103_transactions", Verdict.FAIL, reason)


def test_a_pass_in_which_nothing_ran_is_not_taken_for_one() -> None:
    found = {row.test: row for row in rows(PRINTED)}
    hollow = [test for test, row in found.items() if is_hollow(row, PRINTED, has_parts=True)]
    assert hollow == ["0045_subscribe_update", "0082_fetch_max_bytes"]


def test_a_pass_without_parts_or_with_one_that_ran_counts() -> None:
    (row,) = (row for row in rows(PRINTED) if row.test == "0045_subscribe_update")
    assert not is_hollow(row, PRINTED, has_parts=False)
    part = "[0045_subscribe_update       /  0.000s] [ do_test_regex:286 ]\n"
    assert not is_hollow(row, part + PRINTED, has_parts=True)


def test_only_tests_that_need_a_broker_are_chosen(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test.c").write_text(TABLE)
    assert dict(_broker_tests(tmp_path)) == {
        "0005_order": "default",
        "0011_produce_batch": "default",
        "0107_topic_recreate": "noautocreate",
        "0049_consume_conn_close": "default",
        "0055_producer_latency": "default",
    }
