"""What goes wrong in a pipeline before or beside what the brokers say: options, lost data, missing software.

Each is a sentence that says what to do. Errors of the cluster itself are ``client/errors.py``'s and pass through.
"""

from __future__ import annotations

from barnabas.model.errors import BarnabasError


class InvalidOption(BarnabasError, ValueError):
    """An option of a source, a sink or a pipeline that is wrong, missing, or does not go with another."""


class DataLost(BarnabasError):
    """Records that the query has not read are not there any more, and ``failOnDataLoss`` is on."""


class ReadStalled(BarnabasError):
    """Records that should be there did not come within ``kafkaConsumer.pollTimeoutMs``."""


class BatchChanged(BarnabasError):
    """A batch that was partly committed came back cut differently, so nobody can say what is missing."""


class NotInstalled(BarnabasError, ImportError):
    """Java, pyarrow or pyspark is missing; the message has the command that installs it."""


class PipelineFailed(BarnabasError):
    """A pipeline's file is wrong, or its query has stopped with an error."""
