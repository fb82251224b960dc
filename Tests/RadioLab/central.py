"""The radio lab's central: bleak (PyPI), which shares no line with BlueCap.

Forked by server.py; bin/radio-central explains the orders.
"""

import asyncio
import contextlib

from bleak import BleakClient, BleakScanner
from bleak.exc import BleakError, BleakGATTProtocolError
from orders import take_orders


class Central:
    LIMIT = 60

    def __init__(self, adapter):
        self.options = {"adapter": adapter}
        self.client, self.values, self.pairing = None, {}, None
        self.news = asyncio.Condition()

    async def order_connect(self, *name):
        wanted = " ".join(name)
        device = await BleakScanner.find_device_by_filter(
            lambda _, heard: heard.local_name == wanted, timeout=self.LIMIT, bluez=self.options
        )
        if device is None:
            raise BleakError(f"{wanted} was not heard")
        # bleak takes ServicesResolved for the end of the discovery, and on the first connection the objects only begin to
        # come then (bleak#1489); and it fails where `Connected` is not signalled, every second time with 5.66. So the
        # first link is for bluetoothd alone, and others are tried. The end of a failed attempt's link is awaited by nobody: if
        # it is signalled in the next attempt, that client takes it for the end of its own link and hears of no other.
        for attempt in range(12):
            ended = asyncio.Event()
            client = BleakClient(device, disconnected_callback=lambda _, ended=ended: ended.set(), bluez=self.options)
            try:
                await client.connect()
            except BleakError:
                continue
            if attempt > 0 and not ended.is_set():
                self.client, self.values = client, {}
                return
            with contextlib.suppress(TimeoutError):  # of one that does not hear that its link has ended
                await client.disconnect()
        raise BleakError(f"{wanted} could not be connected")

    async def order_services(self):
        def line(service, characteristic):
            descriptors = [descriptor.uuid for descriptor in characteristic.descriptors]
            return " ".join([service.uuid, characteristic.uuid, ",".join(sorted(characteristic.properties)), *descriptors])

        return [
            line(service, characteristic)
            for service in sorted(self.client.services, key=lambda service: service.handle)
            for characteristic in sorted(service.characteristics, key=lambda characteristic: characteristic.handle)
        ]

    async def refusal(self, call):
        """What it returns, or what the peer said in its place."""
        try:
            return await call
        except BleakGATTProtocolError as error:
            return f"refused {int(error.code):02x}"

    async def order_read(self, uuid):
        value = await self.refusal(self.client.read_gatt_char(uuid))
        return [value if isinstance(value, str) else bytes(value).hex()]

    async def order_describe(self, uuid, descriptor):
        found = self.client.services.get_characteristic(uuid).get_descriptor(descriptor)
        return [bytes(await self.client.read_gatt_descriptor(found.handle)).hex()]

    async def order_write(self, uuid, value, how):
        written = self.client.write_gatt_char(uuid, bytes.fromhex(value), response=how == "request")
        return [await self.refusal(written) or "written"]

    async def order_subscribe(self, uuid, how):
        values = self.values[uuid] = []

        async def note():
            async with self.news:
                self.news.notify_all()

        def heard(_, value):
            values.append(bytes(value).hex())
            asyncio.ensure_future(note())

        await self.client.start_notify(uuid, heard, bluez={"use_start_notify": how == "signals"})

    async def order_unsubscribe(self, uuid):
        await self.client.stop_notify(uuid)

    async def order_values(self, uuid, count):
        values = self.values[uuid]

        async def enough():
            async with self.news:
                await self.news.wait_for(lambda: len(values) >= int(count))

        try:
            await asyncio.wait_for(enough(), self.LIMIT)
        except TimeoutError:
            raise BleakError(f"{len(values)} of {count} values came") from None
        return [" ".join(values)]

    async def order_pair(self):
        self.pairing = asyncio.ensure_future(self.client.pair())

    async def order_paired(self):
        try:
            await self.pairing
        except BleakError as error:
            return [str(error)]
        return ["paired"]

    async def order_disconnect(self):
        await self.client.disconnect()


async def main(adapter, state):
    async with await take_orders(Central(adapter), state) as server:
        await server.serve_forever()
