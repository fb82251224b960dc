"""bleak's scanner, under the same rules as the others: see BusScannerInC/main.c.

The bus is the one that DBUS_SYSTEM_BUS_ADDRESS names.
"""

import asyncio

from bleak import BleakScanner

SENTINEL = "FF:FF:FF:FF:FF:FF"


async def main() -> None:
    received = 0

    def detected(device, advertisement):
        nonlocal received
        if device.address != SENTINEL:
            received += 1
            return
        print(f"received {received} devices {len(scanner.discovered_devices)}", flush=True)
        received = 0

    scanner = BleakScanner(detected)
    await scanner.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


asyncio.run(main())
