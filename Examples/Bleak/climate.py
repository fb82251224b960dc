"""Reads temperatures with bleak."""

import asyncio
import sys

from bleak import BleakClient, BleakScanner
from bleak.exc import BleakError

TEMPERATURE = "2a6e"


async def read_temperature(name: str, attempts: int = 3) -> float:
    """Returns the temperature, in degrees Celsius, of the sensor with this name. Refused connections are repeated.

    Raises LookupError if there is no such sensor in range, and BleakError if the last attempt fails.
    """
    device = await BleakScanner.find_device_by_name(name, timeout=5)
    if device is None:
        raise LookupError(f"no sensor named {name} is in range")
    for attempt in range(1, attempts + 1):
        try:
            async with BleakClient(device) as client:
                value = await client.read_gatt_char(TEMPERATURE)
                return int.from_bytes(value, "little", signed=True) / 100
        except BleakError:
            if attempt == attempts:
                raise
    raise ValueError("attempts is less than one")


if __name__ == "__main__":
    print(asyncio.run(read_temperature(sys.argv[1])), "°C")
