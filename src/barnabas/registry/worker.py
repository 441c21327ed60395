"""The worker process: reads jobs from standard input, performs them within limits, writes results to standard output.

``python -m barnabas.registry.worker`` is started by ``pool.py``. A job that needs too much CPU time ends the process,
one that needs too much memory fails; either way the service that asked goes on.
"""

from __future__ import annotations

import os
import resource
import struct
import sys
import traceback
from typing import Any, BinaryIO, Final

import msgspec

from barnabas.registry.engines import Job, perform
from barnabas.registry.incompatibility import InvalidSchema

HEAD: Final = struct.Struct(">I")
CPU_SECONDS_MAX: Final = 3
MEMORY_BYTES_MAX: Final = 1024 * 1024 * 1024  # of address space
RECURSION_MAX: Final = 2000


class Result(msgspec.Struct):
    value: Any = None
    invalid: str | None = None  # why the schema was refused


def main() -> None:
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not be taken for a result
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    sys.setrecursionlimit(RECURSION_MAX)
    decoder = msgspec.msgpack.Decoder(Job)
    while (frame := read_frame(source)) is not None:
        _limit_cpu()
        result = _performed(decoder.decode(frame))
        write_frame(target, msgspec.msgpack.encode(result))


def _limit_cpu() -> None:
    """The process is killed when it has used so many seconds more than by now."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 1 + CPU_SECONDS_MAX, hard))


def _performed(job: Job) -> Result:
    try:
        return Result(value=perform(job))
    except InvalidSchema as error:
        return Result(invalid=str(error))
    except RecursionError:
        return Result(invalid="the schema is nested too deeply")
    except MemoryError:
        return Result(invalid="the schema needs too much memory")
    except Exception as error:  # noqa: BLE001 - libraries parse here what strangers send
        traceback.print_exc()
        return Result(invalid=f"the schema cannot be read ({type(error).__name__})")


def read_frame(source: BinaryIO) -> bytes | None:
    head = source.read(HEAD.size)
    return source.read(HEAD.unpack(head)[0]) if len(head) == HEAD.size else None


def write_frame(target: BinaryIO, content: bytes) -> None:
    target.write(HEAD.pack(len(content)) + content)
    target.flush()


if __name__ == "__main__":
    main()
