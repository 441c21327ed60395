"""Compiles the record codec, and what reads a produce, where a C compiler is at hand; the rest is in pyproject.toml.

Both are Python source that runs interpreted and compiled. ``optional`` lets an installation without a compiler go
on with the interpreted form, which is slower and says so once.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

EXTENSIONS = cythonize(
    [
        Extension(
            "barnabas.wire.record_codec",
            ["src/barnabas/wire/record_codec.py"],
            depends=["src/barnabas/wire/named_tuple.pxd"],
        ),
        Extension(
            "barnabas.wire.record_encoder",
            ["src/barnabas/wire/record_encoder.py"],
            depends=["src/barnabas/wire/record_bytes.pxd"],
        ),
        Extension(
            "barnabas.wire.record_builder",
            ["src/barnabas/wire/record_builder.py"],
            depends=["src/barnabas/wire/named_tuple.pxd", "src/barnabas/wire/record_bytes.pxd"],
        ),
        Extension("barnabas.wire.produce_frame", ["src/barnabas/wire/produce_frame.py"]),
        Extension("barnabas.wire.key_hash", ["src/barnabas/wire/key_hash.py"]),
        Extension("barnabas.wire.record_headers", ["src/barnabas/wire/record_headers.py"]),
        Extension(
            "barnabas.wire.record_filter",
            ["src/barnabas/wire/record_filter.py"],
            depends=["src/barnabas/wire/sip_hash.pxd"],
        ),
        *(
            Extension(
                f"barnabas.wire.avro.{name}",
                [f"src/barnabas/wire/avro/{name}.py"],
                depends=["src/barnabas/wire/avro/columns.pxd", "src/barnabas/wire/avro/values.pxd"],
            )
            for name in ("columns", "values", "decoder")
        ),
    ],
    language_level=3,
    build_dir="build/cython",
    include_path=["src"],
)
# Cython makes new extensions of those it is given and forgets this attribute on the way.
for extension in EXTENSIONS:
    extension.optional = True

setup(ext_modules=EXTENSIONS)
