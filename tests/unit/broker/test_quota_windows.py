"""Over which time a rate is taken: as the settings of the windows say."""

from __future__ import annotations

import pytest

from barnabas.broker.settings.broker import BrokerSettings
from barnabas.security.quota import TokenBucket, WindowedRate

LIMIT = 100.0


def rate_of(**settings: str) -> WindowedRate:
    found = BrokerSettings.of({name.replace("_", "."): value for name, value in settings.items()}).quotas
    return WindowedRate(windows=found.windows, window_ms=found.window_ms)


def bucket_of(**settings: str) -> TokenBucket:
    found = BrokerSettings.of({name.replace("_", "."): value for name, value in settings.items()}).quotas
    return TokenBucket(windows=found.mutation_windows, window_ms=found.mutation_window_ms, limit=LIMIT, now_ms=0)


@pytest.mark.parametrize(
    ("settings", "seconds"),
    [
        ({"quota_window_num": "3", "quota_window_size_seconds": "1"}, 3),
        ({"quota_window_num": "6", "quota_window_size_seconds": "1"}, 6),
        ({"quota_window_num": "3", "quota_window_size_seconds": "4"}, 12),
    ],
)
def test_a_client_is_idle_when_all_windows_are_over(settings: dict[str, str], seconds: int) -> None:
    rate = rate_of(**settings)
    rate.record(1000, now_ms=0, limit=LIMIT)
    assert not rate.is_idle(seconds * 1000 - 1001)
    assert rate.is_idle(seconds * 1000 + 1000)


@pytest.mark.parametrize(
    ("settings", "burst"),
    [
        ({"controller_quota_window_num": "5", "controller_quota_window_size_seconds": "1"}, 500),
        ({"controller_quota_window_num": "2", "controller_quota_window_size_seconds": "1"}, 200),
        ({"controller_quota_window_num": "2", "controller_quota_window_size_seconds": "3"}, 600),
    ],
)
def test_as_many_changes_at_once_as_fit_into_the_windows(settings: dict[str, str], burst: int) -> None:
    bucket = bucket_of(**settings)
    bucket.take(burst, now_ms=0, limit=LIMIT)
    assert bucket.throttle_ms(now_ms=0, limit=LIMIT) == 0
    bucket.take(LIMIT, now_ms=0, limit=LIMIT)
    assert bucket.throttle_ms(now_ms=0, limit=LIMIT) > 0
