"""bleak as a central, under the same rules as the others: see BusCentralInC/main.c.

The bus is the one that DBUS_SYSTEM_BUS_ADDRESS names.
"""

import asyncio
import sys
import time

from bleak import BleakClient
from bleak.backends.device import BLEDevice

PATH = "/org/bluez/hci0/dev_C0_98_E5_00_00_01"
ADDRESS = "C0:98:E5:00:00:01"
ATTRIBUTES = 110
SENTINEL = b"\xff\xff\xff\xff"


def say(line: str) -> None:
    print(line, flush=True)


def report(latencies: list[float], wall: float) -> None:
    latencies.sort()
    count = len(latencies)
    say(f"took {count} {wall:.9f} {latencies[count // 2] * 1e6:.3f} {latencies[count * 99 // 100] * 1e6:.3f}")


def attributes(client: BleakClient) -> int:
    return sum(1 + len(service.characteristics) for service in client.services)


async def call(client: BleakClient, characteristics: list, total: int, *, writes: bool) -> None:
    latencies: list[float] = []
    left = iter(range(total))

    async def caller(characteristic) -> None:
        for _ in left:
            start = time.monotonic()
            if writes:
                await client.write_gatt_char(characteristic, bytes(20), response=True)
            else:
                await client.read_gatt_char(characteristic)
            latencies.append(time.monotonic() - start)

    start = time.monotonic()
    await asyncio.gather(*map(caller, characteristics))
    report(latencies, time.monotonic() - start)


async def connect(client: BleakClient, total: int) -> None:
    latencies: list[float] = []
    complete = 0
    begin = time.monotonic()
    for _ in range(total):
        start = time.monotonic()
        await client.connect()
        latencies.append(time.monotonic() - start)
        complete += attributes(client) == ATTRIBUTES
        await client.disconnect()
    wall = time.monotonic() - begin
    report(latencies[: complete or 1], wall)


async def main(mode: str) -> None:
    received = 0

    def notified(_, value: bytearray) -> None:
        nonlocal received
        if value[:4] != SENTINEL:
            received += 1
            return
        say(f"received {received}")
        received = 0

    properties = {"Adapter": "/org/bluez/hci0", "Address": ADDRESS}
    device = BLEDevice(ADDRESS, "Sensor 000001", {"path": PATH, "props": properties})
    client = BleakClient(device)
    if mode != "resolve":
        await client.connect()
        characteristics = sorted(client.services.characteristics.values(), key=lambda one: one.handle)
        if mode in ("notify", "acquire"):
            await client.start_notify(characteristics[0], notified, bluez={"use_start_notify": mode == "notify"})
    say("ready")
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        _, total, *width = line.split()
        if mode in ("read", "write"):
            await call(client, characteristics[: int(width[0])], int(total), writes=mode == "write")
        else:
            await connect(client, int(total))


asyncio.run(main(sys.argv[1]))
