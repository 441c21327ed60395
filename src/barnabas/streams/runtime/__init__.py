"""The record runtime: tasks that turn records of their partitions into output, with all memory in their stores.

Pure code: no clock, no randomness, no files. See :mod:`barnabas.streams.runtime.task` for the interface.
"""
