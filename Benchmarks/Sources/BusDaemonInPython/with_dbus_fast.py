"""A pretend bluetoothd 5.82 for a peripheral: one connected central that subscribes to the first characteristic.

It prints `ready` when it owns its name, `subscribed` when it has the socket of AcquireNotify, and `received COUNT` at each
value whose first four bytes are 0xFF: as many as came since the last such line, by signals and by the socket together.
The bus is the one that DBUS_SYSTEM_BUS_ADDRESS names.
"""

import asyncio
import os
import socket
import sys

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.constants import BusType

ADAPTER = "/org/bluez/hci0"
CENTRAL = ADAPTER + "/dev_C0_98_E5_00_00_01"
OBJECT_MANAGER = "org.freedesktop.DBus.ObjectManager"
CHARACTERISTIC = "org.bluez.GattCharacteristic1"
SENTINEL = b"\xff" * 4

OBJECTS = {
    ADAPTER: {
        "org.bluez.Adapter1": {
            "Address": Variant("s", "C0:98:E5:00:00:00"),
            "AddressType": Variant("s", "public"),
            "Name": Variant("s", "bench"),
            "Alias": Variant("s", "bench"),
            "Powered": Variant("b", True),
            "Discovering": Variant("b", False),
            "UUIDs": Variant("as", []),
            "Modalias": Variant("s", "usb:v1D6Bp0246d0552"),
            "Roles": Variant("as", ["central", "peripheral"]),
        },
        "org.bluez.GattManager1": {},
        "org.bluez.LEAdvertisingManager1": {
            "ActiveInstances": Variant("y", 0),
            "SupportedInstances": Variant("y", 5),
            "SupportedIncludes": Variant("as", ["tx-power", "appearance", "local-name"]),
        },
    },
    CENTRAL: {
        "org.bluez.Device1": {
            "Address": Variant("s", "C0:98:E5:00:00:01"),
            "AddressType": Variant("s", "public"),
            "Alias": Variant("s", "Central"),
            "Adapter": Variant("o", ADAPTER),
            "Paired": Variant("b", False),
            "Bonded": Variant("b", False),
            "Trusted": Variant("b", False),
            "Blocked": Variant("b", False),
            "Connected": Variant("b", True),
            "ServicesResolved": Variant("b", True),
            "UUIDs": Variant("as", []),
        },
    },
}


def say(line: str) -> None:
    print(line, flush=True)


class Daemon:
    def __init__(self, bus: MessageBus):
        self.bus = bus
        self.values = 0
        self.socket: socket.socket | None = None
        self.task: asyncio.Task | None = None

    def received(self, message: Message):
        if message.message_type == MessageType.SIGNAL:
            if message.member == "PropertiesChanged" and message.body[0] == CHARACTERISTIC:
                value = message.body[1].get("Value")
                if value is not None:
                    self.count(value.value)
            return None
        if message.message_type != MessageType.METHOD_CALL:
            return None
        if message.member == "GetManagedObjects":
            return Message.new_method_return(message, "a{oa{sa{sv}}}", [OBJECTS])
        if message.member == "GetDiscoveryFilters":
            return Message.new_method_return(message, "as", [["UUIDs", "RSSI", "Pathloss", "Transport"]])
        if message.member == "RegisterApplication":
            self.task = asyncio.get_running_loop().create_task(self.register(message))
            return True
        return Message.new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", message.member)

    async def register(self, call: Message) -> None:
        objects = await self.bus.call(
            Message(
                destination=call.sender, path=call.body[0], interface=OBJECT_MANAGER, member="GetManagedObjects"))
        path = next(path for path, interfaces in objects.body[0].items() if CHARACTERISTIC in interfaces)
        await self.bus.send(Message.new_method_return(call))
        options = {"device": Variant("o", CENTRAL), "mtu": Variant("q", 247), "link": Variant("s", "LE")}
        reply = await self.bus.call(
            Message(
                destination=call.sender, path=path, interface=CHARACTERISTIC, member="AcquireNotify",
                signature="a{sv}", body=[options]))
        if reply.message_type == MessageType.ERROR:
            sys.exit(f"with_dbus_fast.py: {reply.error_name} {reply.body}")
        self.socket = socket.socket(fileno=reply.unix_fds[reply.body[0]])
        self.socket.setblocking(False)
        asyncio.get_running_loop().add_reader(self.socket, self.readable)
        say("subscribed")

    def readable(self) -> None:
        try:
            while value := self.socket.recv(512):
                self.count(value)
        except BlockingIOError:
            return
        asyncio.get_running_loop().remove_reader(self.socket)

    def count(self, value: bytes) -> None:
        self.values += 1
        if bytes(value[:4]) == SENTINEL:
            say(f"received {self.values}")
            self.values = 0


async def main() -> None:
    bus = await MessageBus(
        bus_address=os.environ["DBUS_SYSTEM_BUS_ADDRESS"], bus_type=BusType.SYSTEM, negotiate_unix_fd=True).connect()
    daemon = Daemon(bus)
    bus.add_message_handler(daemon.received)
    await bus.call(
        Message(
            destination="org.freedesktop.DBus", path="/org/freedesktop/DBus", interface="org.freedesktop.DBus",
            member="AddMatch", signature="s",
            body=["type='signal',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'"]))
    await bus.request_name("org.bluez")
    say("ready")
    await bus.wait_for_disconnect()


asyncio.run(main())
