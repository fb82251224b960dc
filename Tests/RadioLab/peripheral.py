"""The radio lab's peripheral: a GATT server made with bluez-peripheral (PyPI), which shares no line with BlueCap.

Forked by server.py; bin/radio-peripheral explains the description and the orders. Registers each application of the
description on a path of its own, one after the other; advertises; writes the port on which it takes orders to the file
`port` of its state directory; and lives until it is killed, or it or bluetoothd leaves the bus.
"""

import asyncio
import json
import re
import sys
import time

from bluez_peripheral.adapter import Adapter
from bluez_peripheral.advert import Advertisement
from bluez_peripheral.gatt.characteristic import CharacteristicFlags, characteristic
from bluez_peripheral.gatt.descriptor import DescriptorFlags, descriptor
from bluez_peripheral.gatt.service import Service, ServiceCollection
from bluez_peripheral.util import get_message_bus
from dbus_fast import DBusError, Message, MessageType
from dbus_fast.service import PropertyAccess, dbus_property
from orders import take_orders


def flags(kind, names):
    """The flags of a kind by the names that BlueZ gives them, such as write-without-response."""
    result = kind.INVALID
    for name in names:
        result |= kind[name.upper().replace("-", "_")]
    return result


# bluez-peripheral knows none of the names for protected notifications, such as encrypt-notify.
PROTECTED = re.compile("(?:encrypt-authenticated|encrypt|secure)-(?=notify|indicate)")


class Value:
    """What an attribute holds and how it answers; everything that happens to it is written to the journal."""

    def __init__(self, journal, key, data):
        self.journal, self.key, self.first = journal, key, bytes(data)
        self.renew()

    def renew(self):
        self.data, self.refusals = bytearray(self.first), {}

    async def answer(self, what):
        """Refuses, or never answers, where it was told so."""
        if what in self.refusals:
            name, text = self.refusals[what]
            if name == "never":
                await asyncio.Event().wait()
            raise DBusError(name, text)

    async def read(self, _service, options):
        self.journal.append(f"read {self.key} {options.offset}")
        await self.answer("read")
        return bytes(self.data[options.offset :])

    async def write(self, _service, data, options):
        self.journal.append(f"write {self.key} {options.offset} {bytes(data).hex()}")
        await self.answer("write")
        self.data[options.offset :] = bytes(data)


class LabCharacteristic(characteristic):
    """A characteristic that writes down who subscribes."""

    def __init__(self, value, uuid, names):
        self.value, self.names = value, names
        super().__init__(uuid, flags(CharacteristicFlags, [PROTECTED.sub("", name) for name in names]))
        self(value.read, value.write)

    @dbus_property(PropertyAccess.READ, "Flags")
    def _get_flags(self) -> "as":
        return self.names

    # bluez-peripheral keeps the subscription in `_notify`, and sets it wherever that changes.
    @property
    def _notify(self):
        return self.__dict__.get("subscribed", False)

    @_notify.setter
    def _notify(self, subscribed):
        if self._notify != subscribed:
            self.value.journal.append(f"{'subscribed' if subscribed else 'unsubscribed'} {self.value.key}")
        self.__dict__["subscribed"] = subscribed


class Peripheral:
    # dbus-fast gives its connection up when the socket is full (EAGAIN). The bus reads in order, so a call that it has
    # answered says that there is room again.
    BURST = 64

    def __init__(self, description, address):
        self.description, self.address = description, address
        self.journal, self.values, self.characteristics = [], {}, {}
        self.applications = [self.application(services) for services in description["applications"]]
        self.advertisement = None

    def value(self, item, key):
        made = Value(self.journal, item.get("key", key), bytes.fromhex(item.get("value", "")))
        self.values[made.key] = made
        return made

    def application(self, services):
        return ServiceCollection([self.service(entry) for entry in services])

    def service(self, entry):
        made = Service(entry["uuid"], entry.get("primary", True))
        for item in entry.get("characteristics", []):
            value = self.value(item, item["uuid"])
            above = LabCharacteristic(value, item["uuid"], item["flags"])
            self.characteristics[value.key] = above
            for below in item.get("descriptors", []):
                held = self.value(below, f"{value.key}/{below['uuid']}")
                descriptor(below["uuid"], above, flags(DescriptorFlags, below.get("flags", ["read"])))(
                    held.read, held.write
                )
            made.add_characteristic(above)
        return made

    async def begin(self):
        self.bus = await get_message_bus()
        self.bus.add_message_handler(self.watch)
        rule = "type='signal',member='NameOwnerChanged',arg0='org.bluez'"
        await self.call("/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", "s", [rule], "org.freedesktop.DBus")
        for adapter in await Adapter.get_all(self.bus):
            if await adapter.get_address() == self.address:
                self.adapter = adapter
        for number in range(len(self.applications)):
            await self.order_register(number)
        await self.order_advertise()

    def watch(self, message):
        if message.member == "NameOwnerChanged" and message.body[0] == "org.bluez":
            sys.exit("bluetoothd has left")

    # --- Orders ---

    async def order_register(self, number):
        path = f"/radio_lab/application{number}"
        await self.applications[int(number)].register(self.bus, path=path, adapter=self.adapter)

    async def order_unregister(self, number):
        await self.applications[int(number)].unregister()

    async def order_renew(self):
        for value in self.values.values():
            value.renew()
        self.journal.clear()
        for number, application in enumerate(self.applications):
            if not application.is_exported:
                await self.order_register(number)
        if not self.advertisement.is_exported:
            await self.order_advertise()

    async def order_advertise(self):
        self.advertisement = Advertisement(
            self.description["name"],
            self.description.get("advertised", []),
            appearance=0,
            manufacturer_data={int(key, 16): bytes.fromhex(value)
                               for key, value in self.description.get("manufacturer", {}).items()},
        )
        await self.advertisement.register(self.bus, adapter=self.adapter)

    async def order_silence(self):
        if self.advertisement.is_exported:
            await self.advertisement.unregister()

    async def order_drop(self):
        """Ends every link of the adapter."""
        objects = await self.call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
        for path, interfaces in objects.body[0].items():
            device = interfaces.get("org.bluez.Device1")
            if device and device["Connected"].value and path.startswith(self.adapter._proxy.path + "/"):
                await self.call(path, "org.bluez.Device1", "Disconnect")

    async def call(self, path, interface, member, signature="", body=(), destination="org.bluez"):
        answer = await self.bus.call(
            Message(destination=destination, path=path, interface=interface, member=member,
                    signature=signature, body=list(body))
        )
        if answer.message_type == MessageType.ERROR:
            raise DBusError(answer.error_name, str(answer.body))
        return answer

    async def order_value(self, key, new=None):
        if new is not None:
            self.values[key].data[:] = bytes.fromhex(new)
        return [self.values[key].data.hex()]

    async def order_notify(self, key, *values):
        for value in values:
            self.characteristics[key].changed(bytes.fromhex(value))

    async def order_count(self, key, count, size, pause):
        begun = time.monotonic()
        for number in range(int(count)):
            self.characteristics[key].changed(number.to_bytes(int(size), "little"))
            await asyncio.sleep(float(pause))
            if number % self.BURST == self.BURST - 1:
                bus = "org.freedesktop.DBus"
                await self.call("/org/freedesktop/DBus", bus, "GetId", destination=bus)
        return [f"{time.monotonic() - begun:.3f}"]

    async def order_subscribed(self, key):
        return ["yes" if self.characteristics[key]._notify else "no"]

    async def order_refuse(self, key, what, name, *text):
        self.values[key].refusals[what] = (name, " ".join(text))

    async def order_allow(self, key, what):
        self.values[key].refusals.pop(what, None)

    async def order_journal(self):
        taken = list(self.journal)
        self.journal.clear()
        return taken


async def main(description, address, state):
    peripheral = Peripheral(json.loads(description), address)
    await peripheral.begin()
    _server = await take_orders(peripheral, state)
    # Without the bus there is no peripheral, and the next start must not take this for one.
    await peripheral.bus.wait_for_disconnect()
