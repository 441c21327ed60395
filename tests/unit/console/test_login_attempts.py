"""Failed logins are limited by user and by address, and the limit ends."""

from __future__ import annotations

from barnabas.console.login_attempts import (
    FAILURE_SECONDS,
    FAILURES_OF_ADDRESS_MAX,
    FAILURES_OF_USER_MAX,
    SOURCES_MAX,
    LoginAttempts,
)


def test_a_user_waits_after_too_many_failures_from_any_address() -> None:
    attempts = LoginAttempts()
    for number in range(FAILURES_OF_USER_MAX):
        assert attempts.wait_seconds("ann", "10.0.0.1", now=10.0) == 0
        attempts.failed("ann", f"10.0.0.{number}", now=10.0)
    assert attempts.wait_seconds("ann", "10.0.0.99", now=11.0) == FAILURE_SECONDS - 1
    assert attempts.wait_seconds("bob", "10.0.0.99", now=11.0) == 0
    assert attempts.wait_seconds("ann", "10.0.0.99", now=10.0 + FAILURE_SECONDS) == 0


def test_an_address_waits_after_too_many_failures_of_any_user() -> None:
    attempts = LoginAttempts()
    for number in range(FAILURES_OF_ADDRESS_MAX):
        attempts.failed(f"user-{number}", "10.0.0.1", now=0.0)
    assert attempts.wait_seconds("ann", "10.0.0.1", now=1.0) > 0
    assert attempts.wait_seconds("ann", "10.0.0.2", now=1.0) == 0


def test_a_login_forgets_the_failures_of_its_user_but_not_of_its_address() -> None:
    attempts = LoginAttempts()
    for number in range(FAILURES_OF_ADDRESS_MAX):
        attempts.failed(f"user-{number}", "10.0.0.1", now=0.0)
        if number % 4 == 2:  # a caller who knows the password of ann logs in between guesses
            attempts.failed("ann", "10.0.0.1", now=0.0)
            attempts.succeeded("ann", "10.0.0.1")
    assert attempts.wait_seconds("ann", "10.0.0.1", now=1.0) > 0
    assert attempts.wait_seconds("ann", "10.0.0.2", now=1.0) == 0


def test_an_attempt_without_an_answer_of_the_cluster_does_not_count() -> None:
    attempts = LoginAttempts()
    for _ in range(FAILURES_OF_ADDRESS_MAX):
        attempts.failed("ann", "10.0.0.1", now=0.0)
        attempts.withdraw("ann", "10.0.0.1")
    assert attempts.wait_seconds("ann", "10.0.0.1", now=1.0) == 0


def test_the_memory_of_failures_is_bounded() -> None:
    attempts = LoginAttempts()
    for number in range(SOURCES_MAX + 10):
        attempts.failed(f"user-{number}", "10.0.0.1", now=float(number))
    assert len(attempts._failures) == SOURCES_MAX
