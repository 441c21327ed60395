"""Compiles the record codec and the produce reader if there is a C compiler, and notes the commit of the build.

The compiled modules are Python source that also runs interpreted. ``optional`` lets an installation without a compiler
continue with the interpreted form, which is slower. Everything else is in pyproject.toml.
"""

import subprocess
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

COMMIT_FILE = "barnabas/commit.txt"
# Without symbols for debuggers the compiled modules have a sixth of the size.
COMPILER_FLAGS = ["-g0"]
LINKER_FLAGS = ["-Wl,--strip-all"]


def write_commit(directory: str) -> None:
    """Write the commit of the checkout, if this is one, for ``barnabas --version``."""
    try:
        command = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
        commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return  # an archive of the source: it has the file already
    (Path(directory) / COMMIT_FILE).write_text(commit)


class BuildPackage(build_py):
    """Notes the commit in what is built."""

    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            write_commit(self.build_lib)


class SourceArchive(sdist):
    """Notes the commit in the archive of the source."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        write_commit(f"{base_dir}/src")


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
    extension.extra_compile_args = COMPILER_FLAGS
    extension.extra_link_args = LINKER_FLAGS

setup(ext_modules=EXTENSIONS, cmdclass={"build_py": BuildPackage, "sdist": SourceArchive})
