"""Files as a source: lines, JSON lines, CSV and Parquet. Files must only grow; offsets are byte positions, or rows.

``FileStreamSource`` takes the keys of Kafka's connector of that name.
"""

from __future__ import annotations

import csv
import glob
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from barnabas.connect.config import C, Config, doc
from barnabas.connect.errors import ConnectError, DataError, OffsetError
from barnabas.connect.plugins import Source, connector
from barnabas.connect.records import Entry, Limit, Offset, Part, Record
from barnabas.connect.schemas import STRING

FileFormat = Literal["lines", "json", "csv", "parquet"]
LINE_BYTES_MAX: Final = 16 * 1024 * 1024
FILES_MAX: Final = 10_000


class FilesSourceConfig(Config):
    """Keys of the files source."""

    path: Annotated[str, doc("File, directory or pattern such as /data/*.json", importance="HIGH")]
    topic: Annotated[str, doc("Topic to write to")]
    format: Annotated[FileFormat, doc("Format of the files", importance="HIGH")] = "lines"
    csv_delimiter: Annotated[str, doc("Character between columns"), Meta(min_length=1, max_length=1)] = ","
    key_field: Annotated[str, doc("Field of the value that becomes the key; empty: no key")] = ""
    batch_size: Annotated[int, doc("Records per file and batch at most"), Meta(ge=1)] = 2000
    poll_interval_ms: Annotated[int, doc("Milliseconds between two looks"), Meta(ge=100)] = 1000

    def check(self) -> list[str]:
        """Return what does not fit together."""
        if self.key_field and self.format == "lines":
            return ["Invalid value for configuration key.field: lines have no fields"]
        return []


class _Files(Source[C]):
    """What both sources share; a subclass says which files, format and topic."""

    def paths(self) -> list[str]:
        """Return the files to read."""
        raise NotImplementedError

    @property
    def format(self) -> FileFormat:
        """Return the format."""
        raise NotImplementedError

    @property
    def count_max(self) -> int:
        """Return how many records of a file one batch may have."""
        raise NotImplementedError

    def record(self, value: Any) -> Record:
        """Return the record of a line, an object or a row."""
        raise NotImplementedError

    def latest(self, since: Offset, limit: Limit) -> Offset:
        """Return the ends of complete lines, or of rows, within the limits."""
        until = dict(since)
        left = limit.size_bytes
        for path in self.paths():
            if left <= 0:
                break
            start = int(since.get(path, 0))
            if self.format == "parquet":
                end = min(_row_count(path), start + self.count_max)
            else:
                end = self._line_end(path, start, min(left, LINE_BYTES_MAX))
                left -= end - start
            if end > start:
                until[path] = end
        return until

    def _line_end(self, path: str, start: int, size: int) -> int:
        """Return where the last complete line ends, at most ``size`` bytes and ``count_max`` lines on."""
        try:
            with Path(path).open("rb") as file:
                file.seek(start)
                data = file.read(size)
                is_more = bool(file.read(1))
        except FileNotFoundError:
            return start
        end, position, count, in_quotes = 0, 0, 0, False
        for line in io.BytesIO(data):
            if not line.endswith(b"\n") or count >= self.count_max:
                break
            # A line break within quotes does not end a row of CSV.
            in_quotes ^= self.format == "csv" and line.count(b'"') % 2 == 1
            position += len(line)
            if not in_quotes:
                end, count = position, count + 1
        if end == 0 and is_more and len(data) >= LINE_BYTES_MAX:
            raise ConnectError(f"{path}: a line from position {start} on is longer than {LINE_BYTES_MAX} bytes")
        return start + end

    def split(self, since: Offset, until: Offset, tasks: int) -> Sequence[Part]:
        """Return one part per file that has grown."""
        return [
            Part({path: since.get(path, 0)}, {path: end}, path)
            for path, end in sorted(until.items())
            if end > since.get(path, 0)
        ]

    def read(self, part: Part) -> Iterator[Record]:
        """Yield the records of a file between two positions."""
        path, start, end = part.data, int(part.since[part.data]), int(part.until[part.data])
        if self.format == "parquet":
            yield from (self.record(row) for row in _rows(path, start, end))
            return
        with Path(path).open("rb") as file:
            header = file.readline(LINE_BYTES_MAX) if self.format == "csv" else b""
            file.seek(start)
            data = file.read(end - start)
        if len(data) < end - start:
            raise ConnectError(f"{path} has become shorter than position {end}: files must only grow")
        yield from (self.record(value) for value in self._values(path, data, header, start))

    def _values(self, path: str, data: bytes, header: bytes, start: int) -> Iterator[Any]:
        text = data.decode(errors="replace")
        if self.format == "csv":
            names = next(csv.reader([header.decode(errors="replace").rstrip("\r\n")], delimiter=self.delimiter))
            rows = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter)
            for number, row in enumerate(rows):
                if row and not (number == 0 and start == 0):
                    yield dict(zip(names, row, strict=False))
            return
        for line in text.split("\n")[:-1]:
            if self.format == "lines":
                yield line.removesuffix("\r")
            elif line.strip():
                yield _object(path, line)

    @property
    def delimiter(self) -> str:
        """Return the character between columns of CSV."""
        return ","

    def entries(self, offset: Offset) -> list[Entry]:
        """Return one entry per file, as Kafka's file source does."""
        return [Entry({"filename": path}, {"position": end}) for path, end in sorted(offset.items())]

    def offset(self, entries: Sequence[Entry]) -> Offset:
        """Return positions by file."""
        made: Offset = {}
        for partition, offset in entries:
            if set(partition) != {"filename"} or not isinstance(partition["filename"], str):
                raise OffsetError("a partition must have the key 'filename' with a string, and no other")
            position = (offset or {}).get("position")
            if isinstance(position, bool) or not isinstance(position, int) or position < 0:
                raise OffsetError("an offset must have the key 'position' with a whole number of at least 0")
            made[partition["filename"]] = position
        return made


def _object(path: str, line: str) -> Any:
    try:
        return msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise DataError(f"{path}: a line is not JSON: {error}") from error


def _row_count(path: str) -> int:
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows)


def _rows(path: str, start: int, end: int) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    position = 0
    with pq.ParquetFile(path) as file:
        for group in range(file.num_row_groups):
            count = file.metadata.row_group(group).num_rows
            if position + count > start and position < end:
                first = max(0, start - position)
                yield from file.read_row_group(group).slice(first, min(count, end - position) - first).to_pylist()
            position += count


@connector("files-source")
class FilesSource(_Files[FilesSourceConfig]):
    """Reads files of a directory or pattern."""

    Config = FilesSourceConfig

    def paths(self) -> list[str]:
        """Return the files of the directory or pattern, by name."""
        path = self.config.path
        found = glob.glob(f"{glob.escape(path)}/*") if Path(path).is_dir() else glob.glob(path)
        files = [each for each in sorted(found) if Path(each).is_file() and not Path(each).name.startswith((".", "_"))]
        if len(files) > FILES_MAX:
            raise ConnectError(f"{path}: {len(files)} files; a connector reads at most {FILES_MAX}")
        return files

    @property
    def format(self) -> FileFormat:
        """Return the format."""
        return self.config.format

    @property
    def delimiter(self) -> str:
        """Return the character between columns of CSV."""
        return self.config.csv_delimiter

    @property
    def count_max(self) -> int:
        """Return how many records of a file one batch may have."""
        return self.config.batch_size

    def record(self, value: Any) -> Record:
        """Return a record, with a key if the configuration names its field."""
        config = self.config
        key = value.get(config.key_field) if config.key_field and isinstance(value, dict) else None
        return Record(config.topic, value, key, value_schema=STRING if config.format == "lines" else None)


class FileStreamSourceConfig(Config):
    """Keys of Kafka's FileStreamSource."""

    file: Annotated[str, doc("File to read", importance="HIGH")]
    topic: Annotated[str, doc("Topic to write to")]
    batch_size: Annotated[int, doc("Lines per batch at most", importance="LOW"), Meta(ge=1)] = 2000


@connector("org.apache.kafka.connect.file.FileStreamSourceConnector")
class FileStreamSource(_Files[FileStreamSourceConfig]):
    """Reads the lines of one file."""

    Config = FileStreamSourceConfig

    def paths(self) -> list[str]:
        """Return the one file, once it is there."""
        return [self.config.file] if Path(self.config.file).is_file() else []

    @property
    def format(self) -> FileFormat:
        """Return lines."""
        return "lines"

    @property
    def count_max(self) -> int:
        """Return how many lines one batch may have."""
        return self.config.batch_size

    def record(self, value: Any) -> Record:
        """Return the record of a line."""
        return Record(self.config.topic, value, value_schema=STRING)
