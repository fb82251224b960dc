"""SimpleBLE as a central, under the same rules as the others: see BusCentralInC/main.c.

The bus is the one that DBUS_SYSTEM_BUS_ADDRESS names.
"""

import concurrent.futures
import itertools
import sys
import time

import simplepyble

ADDRESS = "C0:98:E5:00:00:01"
ATTRIBUTES = 110
SENTINEL = b"\xff\xff\xff\xff"


def say(line: str) -> None:
    print(line, flush=True)


def report(latencies: list[float], wall: float) -> None:
    latencies.sort()
    count = len(latencies)
    say(f"took {count} {wall:.9f} {latencies[count // 2] * 1e6:.3f} {latencies[count * 99 // 100] * 1e6:.3f}")


def attributes(peripheral) -> int:
    return sum(1 + len(service.characteristics()) for service in peripheral.services())


def read(peripheral, characteristics: list[tuple[str, str]], total: int) -> None:
    left = itertools.count()

    def reader(characteristic: tuple[str, str]) -> list[float]:
        latencies = []
        while next(left) < total:
            start = time.monotonic()
            peripheral.read(*characteristic)
            latencies.append(time.monotonic() - start)
        return latencies

    start = time.monotonic()
    if len(characteristics) == 1:
        latencies = reader(characteristics[0])
    else:
        with concurrent.futures.ThreadPoolExecutor(len(characteristics)) as pool:
            latencies = list(itertools.chain(*pool.map(reader, characteristics)))
    report(latencies, time.monotonic() - start)


def connect(peripheral, total: int) -> None:
    latencies: list[float] = []
    complete = 0
    begin = time.monotonic()
    for _ in range(total):
        start = time.monotonic()
        peripheral.connect()
        latencies.append(time.monotonic() - start)
        complete += attributes(peripheral) == ATTRIBUTES
        peripheral.disconnect()
    wall = time.monotonic() - begin
    report(latencies[: complete or 1], wall)


def main(mode: str) -> None:
    received = 0

    def notified(value: bytes) -> None:
        nonlocal received
        if value[:4] != SENTINEL:
            received += 1
            return
        say(f"received {received}")
        received = 0

    adapter = simplepyble.Adapter.get_adapters()[0]
    peripheral = next(one for one in adapter.get_paired_peripherals() if one.address().upper() == ADDRESS)
    if mode != "resolve":
        peripheral.connect()
        # It may return before all services are there.
        while attributes(peripheral) < ATTRIBUTES:
            time.sleep(0.01)
        characteristics = sorted(
            (service.uuid(), characteristic.uuid())
            for service in peripheral.services()
            for characteristic in service.characteristics())
        if mode == "notify":
            peripheral.notify(*characteristics[0], notified)
    say("ready")
    for line in sys.stdin:
        _, total, *width = line.split()
        if mode == "read":
            read(peripheral, characteristics[: int(width[0])], int(total))
        else:
            connect(peripheral, int(total))


main(sys.argv[1])
