"""What Swift's tools need to find the modules that `swift build` has built."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def binaries() -> pathlib.Path:
    """The folder of the build, `.build/<platform>/debug`."""
    show = ["swift", "build", "--show-bin-path"]
    return pathlib.Path(subprocess.run(show, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip())


def search_flags(build: pathlib.Path) -> list[str]:
    """The flags with which a tool finds the modules, in Swift and in C."""
    flags = ["-I", str(build / "Modules")]
    for module_map in sorted(build.glob("*.build/module.modulemap")):
        flags += ["-Xcc", f"-fmodule-map-file={module_map}"]
    return flags
