"""Builds wheels with compiled kernels; everything else is in pyproject.toml.

``python -m build`` ships them, in a wheel for this platform and Python. Where pip builds the package only to install
it, nobody waits for that: kernels are compiled on first use, or by ``foreword warm``. FOREWORD_SHIP_KERNELS, 1 or 0,
decides otherwise.
"""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_py import build_py

SHIPS = os.environ.get("FOREWORD_SHIP_KERNELS", "0" if "PIP_BUILD_TRACKER" in os.environ else "1") == "1"
PROJECT = tomllib.loads(Path(__file__).with_name("pyproject.toml").read_text(encoding="utf-8"))["project"]


class BuildWithKernels(build_py):
    """Copies the modules, and compiles their kernels."""

    def run(self) -> None:
        super().run()
        if SHIPS and not self.editable_mode:
            library = Path(self.build_lib).absolute()
            command = [sys.executable, "-m", "foreword.cli.shipping", str(library / "foreword" / "native" / "kernels")]
            environment = {**os.environ, "PYTHONPATH": str(library), "PYTHONDONTWRITEBYTECODE": "1"}
            subprocess.run(command, check=True, env=environment)


class PlatformWheel(bdist_wheel):
    """Names the wheel after the platform and Python that its kernels are for."""

    def finalize_options(self) -> None:
        self.distribution.has_ext_modules = lambda: SHIPS  # a wheel that has any is not for every platform
        super().finalize_options()

    def get_tag(self) -> tuple[str, str, str]:
        python, abi, platform = super().get_tag()
        # The kernels need no library but those that Numba has loaded, so any Linux that Numba's wheels run on will do.
        return python, abi, platform.replace("linux_", "manylinux_2_28_") if platform.startswith("linux_") else platform


setup(
    cmdclass={"build_py": BuildWithKernels, "bdist_wheel": PlatformWheel},
    setup_requires=PROJECT["dependencies"] if SHIPS else [],
)
