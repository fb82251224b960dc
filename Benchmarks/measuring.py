"""What the measurements on a bus have in common: processes that speak in lines, a bus of our own, tables."""

import os
import pathlib
import re
import select
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
PATIENCE = 120.0
"""Seconds within which anything that is waited for has happened, or the run has failed."""

CONFIGURATION = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <listen>unix:path={socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow receive_sender="*"/>
  </policy>
  <!-- A message counts as incoming of its sender until its receivers have it. So the small limit is what paces the
       flood: the daemon stops reading when that much is under way. The large one keeps it from dropping any. -->
  <limit name="max_incoming_bytes">4000000</limit>
  <limit name="max_outgoing_bytes">1000000000</limit>
  <limit name="max_message_size">128000000</limit>
</busconfig>
"""


def cpu(pid: int) -> float:
    """User and system seconds of all threads of a process, the ended ones too, to the nanosecond."""
    # The kernel's number for the CPU clock of another process: see clock_getcpuclockid(3).
    return time.clock_gettime((~pid << 3) | 2)


class Process:
    """A child that speaks in lines."""

    def __init__(self, name: str, command: list[str], environment: dict[str, str] | None = None, errors=None):
        self.name = name
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        self.unread = b""

    def say(self, line: str) -> None:
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()

    def line(self, starting: str) -> str:
        """Waits for the next line, which must start so."""
        descriptor = self.child.stdout.fileno()
        deadline = time.monotonic() + PATIENCE
        while b"\n" not in self.unread:
            readable, _, _ = select.select([descriptor], [], [], max(0, deadline - time.monotonic()))
            more = os.read(descriptor, 65536) if readable else b""
            if not more:
                fate = "ended" if readable else "said nothing"
                sys.exit(f"bench-bus: {self.name} {fate} where “{starting}…” was expected")
            self.unread += more
        line, _, self.unread = self.unread.partition(b"\n")
        text = line.decode()
        if not text.startswith(starting):
            sys.exit(f"bench-bus: {self.name} said “{text}” instead of “{starting}”")
        return text

    @property
    def cpu(self) -> float:
        return cpu(self.child.pid)

    def settled_cpu(self) -> float:
        """Its CPU time once it stands still, so that work put off until after the last event counts too."""
        before, now = -1.0, self.cpu
        deadline = time.monotonic() + PATIENCE
        while now != before and time.monotonic() < deadline:
            time.sleep(0.01)
            before, now = now, self.cpu
        return now

    def memory(self, field: str) -> int:
        """Bytes, by a name of /proc/PID/status: VmRSS now, VmHWM at the peak."""
        status = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(field))

    def end(self) -> None:
        self.child.kill()
        self.child.wait()
        self.child.stdin.close()
        self.child.stdout.close()


ALLOCATORS = {"malloc", "calloc", "realloc", "posix_memalign"}


class Counted(Process):
    """A program of ours under valgrind's callgrind, which counts its instructions and allocations, in a folder of this run."""

    def __init__(self, program: pathlib.Path, mode: list[str], bus: "Bus", directory: pathlib.Path, *options: str):
        # Valgrind 3.19 ends itself at the debug information that Swift writes.
        stripped = directory / program.name
        subprocess.run(["strip", "--strip-debug", "-o", stripped, program], check=True)
        self.counts = directory / "counts"
        self.dumps = 0
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.counts}", "--quiet", *options]
        with open(directory / "valgrind", "wb") as said:
            super().__init__(program.name, [*valgrind, str(stripped), *mode],
                             {"DBUS_SYSTEM_BUS_ADDRESS": bus.address}, said)

    def count(self) -> None:
        """Counts from now on, if its options have --instr-atstart=no."""
        self.control("-i", "on")

    def counted(self) -> tuple[int, int]:
        """The instructions and allocations since the last call, or since the counting began."""
        self.settled_cpu()
        self.control("-d")
        self.dumps += 1
        return read_counts(pathlib.Path(f"{self.counts}.{self.dumps}").read_text())

    def control(self, *words: str) -> None:
        subprocess.run(["callgrind_control", *words, str(self.child.pid)], check=True, capture_output=True)


def read_counts(text: str) -> tuple[int, int]:
    """The instructions and allocations that a file of callgrind has. A name is written once, and has a number from then on."""
    names, called, allocations = {}, "", 0
    for match in re.finditer(r"^c?fn=\((\d+)\)(?: (.+))?$|^calls=(\d+) ", text, re.MULTILINE):
        number, name, calls = match.groups()
        if number:
            if name:
                names[number] = name
            called = names[number]
        elif called in ALLOCATORS:
            allocations += int(calls)
    instructions = re.search(r"^(?:summary|totals): (\d+)", text, re.MULTILINE)
    return int(instructions[1]), allocations


class Bus:
    """A dbus-daemon of our own, with a configuration of our own."""

    def __init__(self, directory: pathlib.Path):
        configuration = directory / "bus.conf"
        configuration.write_text(CONFIGURATION.format(socket=directory / "bus"))
        command = ["dbus-daemon", "--nofork", "--nosyslog", "--print-address", f"--config-file={configuration}"]
        # In a container it complains that it may not raise its limit of open files; it needs few.
        with open(directory / "complaints", "wb") as complaints:
            self.daemon = Process("dbus-daemon", command, errors=complaints)
        try:
            self.address = self.daemon.line("unix:")
        except SystemExit:
            print((directory / "complaints").read_text(), end="", file=sys.stderr)
            raise

    def end(self) -> None:
        self.daemon.end()


def table(headings: list[str], rows: list[list[str]]) -> str:
    """Markdown that reads well as plain text too."""
    rows = [headings, *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(headings))]

    def line(row: list[str]) -> str:
        cells = [
            cell.ljust(width) if column < 2 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths))
        ]
        return f"| {' | '.join(cells)} |"

    rule = [
        "-" * width if column < 2 else "-" * (width - 1) + ":"
        for column, width in enumerate(widths)
    ]
    return "\n".join([line(rows[0]), line(rule), *map(line, rows[1:])])


def build(*products: str) -> pathlib.Path:
    """Builds what is to be measured, for release, and says where it lies."""
    swift = ["swift", "build", "--package-path", str(HERE), "-c", "release"]
    for product in products:
        subprocess.run([*swift, "--product", product], check=True, stdout=sys.stderr)
    shown = subprocess.run([*swift, "--show-bin-path"], check=True, capture_output=True, text=True)
    return pathlib.Path(shown.stdout.strip())


def spaced(number: float) -> str:
    """Thousands apart."""
    return f"{number:,.0f}".replace(",", " ")
