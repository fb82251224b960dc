"""Tests climate.py without a radio:

    bluecap simulate --peripherals Examples/Rooms/sensors.json -- python3 Examples/Bleak/test_climate.py
"""

import asyncio
import os
import unittest

from bleak.exc import BleakError

from climate import read_temperature

GARDEN = "C8:D0:83:6A:12:F4"


async def fault(words: str) -> None:
    """Injects a fault, as `bluecap simulate fault WORDS` does."""
    reader, writer = await asyncio.open_unix_connection(os.environ["BLUECAP_SIMULATOR"])
    writer.write(words.encode() + b"\n")
    reply = (await reader.readline()).decode().strip()
    writer.close()
    if reply != "ok":
        raise RuntimeError(reply)


class ClimateTests(unittest.IsolatedAsyncioTestCase):
    async def test_the_temperature_is_read(self):
        self.assertIn(await read_temperature("Garden"), [24.14, 24.24])

    async def test_a_temperature_below_zero_is_read(self):
        self.assertEqual(await read_temperature("Cellar"), -11.54)

    async def test_refused_connections_are_repeated(self):
        await fault("refuse-call Connect")
        await fault("refuse-call Connect")
        self.assertIn(await read_temperature("Garden"), [24.14, 24.24])

    async def test_the_last_refused_connection_is_an_error(self):
        await fault("refuse-call Connect")
        with self.assertRaises(BleakError):
            await read_temperature("Garden", attempts=1)

    async def test_a_sensor_out_of_range_is_an_error(self):
        await fault(f"out-of-range {GARDEN}")
        self.addAsyncCleanup(fault, f"in-range {GARDEN}")
        with self.assertRaises(LookupError):
            await read_temperature("Garden")


if __name__ == "__main__":
    unittest.main()
