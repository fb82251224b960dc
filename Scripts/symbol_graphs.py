"""The symbol graphs of the public modules, as Swift's own tool extracts them from the modules that are built."""

import concurrent.futures
import json
import pathlib
import shutil
import subprocess

from built_modules import ROOT, binaries, search_flags

# The modules that programs import.
MODULES = ["BlueCapFutures", "BlueCapGATT", "BlueCapProfiles", "BlueCapKit", "Bluejay", "CoreBluetooth", "BlueCapMetrics", "BlueZSimulator"]


def graphs(module: str, folder: pathlib.Path, target: str, flags: list[str]) -> list[dict]:
    """Writes the graphs of a module into a folder, and returns them: one for the module's own symbols, and one for each
    module that it extends."""
    folder.mkdir(parents=True)
    swift = pathlib.Path(shutil.which("swift") or "swift").resolve()
    tool = [str(swift.parent / "swift-symbolgraph-extract"), "-module-name", module, "-target", target, *flags]
    tool += ["-minimum-access-level", "public", "-emit-extension-block-symbols", "-output-dir", str(folder)]
    subprocess.run(tool, cwd=ROOT, check=True)
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]


def extract(folder: pathlib.Path) -> dict[str, list[dict]]:
    """Writes the graphs of each public module into a folder of its name, and returns them. The folder's previous content
    is removed."""
    shutil.rmtree(folder, ignore_errors=True)
    build = binaries()
    flags = search_flags(build)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        runs = {name: pool.submit(graphs, name, folder / name, build.parent.name, flags) for name in MODULES}
        return {name: run.result() for name, run in runs.items()}
