"""Where log lines go when a broker runs from the command line: as its settings say, and standard error before that."""

from __future__ import annotations

from barnabas.broker.settings.observe import ObserveSettings
from barnabas.model.settings import InvalidSetting
from barnabas.observe import lines


def write_logs(settings: ObserveSettings | None = None) -> None:
    """InvalidSetting if the file cannot be written."""
    if settings is None:
        lines.write_logs()
        return
    try:
        lines.write_logs(
            form=settings.log_format,
            level=settings.log_level,
            path=settings.log_file,
            file_bytes_max=settings.log_file_bytes_max,
            file_count=settings.log_file_count,
            has_audit=settings.has_audit,
        )
    except OSError as error:
        raise InvalidSetting(f"barnabas.log.file={settings.log_file}: {error.strerror}") from error
