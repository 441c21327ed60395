"""Tools for developers: what the tests and the benchmarks fetch from others, and where they keep it.

Nothing in here is part of the product, and nothing that these tools fetch or build is committed.
"""
