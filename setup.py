"""Compiles the record codec where a C compiler is at hand; everything else is declared in pyproject.toml.

The codec is one Python source that runs interpreted and compiled. ``optional=True`` lets an installation without a
compiler go on with the interpreted form, which is slower and says so once.
"""

from Cython.Build import cythonize
from setuptools import Extension, setup

EXTENSIONS = [
    Extension(
        "barnabas.wire.record_codec",
        ["src/barnabas/wire/record_codec.py"],
        depends=["src/barnabas/wire/named_tuple.pxd"],
        optional=True,
    ),
    Extension("barnabas.wire.record_encoder", ["src/barnabas/wire/record_encoder.py"], optional=True),
]

setup(ext_modules=cythonize(EXTENSIONS, language_level=3, build_dir="build/cython", include_path=["src"]))
