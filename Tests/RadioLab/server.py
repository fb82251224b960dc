"""The radio lab's server: does what the commands in bin/ ask for, in one process that has its modules loaded.

Usage: server.py STATE-DIRECTORY CONTROLLERS

Started by guest, once for each machine. On the emulated processor a process costs a tenth of a second and a Python with
bleak several seconds, and a test needs many such steps. Orders are taken as in orders.py; the commands in bin/ explain them.
"""

import argparse
import asyncio
import importlib
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus
from dbus_fast.service import PropertyAccess, ServiceInterface, dbus_property, method

import air
import btmon
from orders import ask, take_orders
from pairing import PairingOrders
from terminal import Terminal

ADAPTER, ADVERTISING = "org.bluez.Adapter1", "org.bluez.LEAdvertisingManager1"
BLUETOOTHD = "/usr/libexec/bluetooth/bluetoothd"
# Seconds for what takes one or two: less than an order may take, so that the reason is said.
LIMIT = 100
# Seconds for the end of a program, which blocks all orders.
END_LIMIT = 5


class Refused(Exception):
    """An error that the bus or bluetoothd answered."""


class Options(argparse.ArgumentParser):
    """Those of an order: what is wrong with them is the caller's error, and no reason for the server to end."""

    def error(self, message):
        raise ValueError(f"radio-advertise --help: {message}")

    def exit(self, status=0, message=None):
        self.error(message or f"status {status}")


class Advertisement(ServiceInterface):
    """What radio-advertise lets an adapter advertise."""

    def __init__(self, words):
        super().__init__("org.bluez.LEAdvertisement1")
        options = Options(add_help=False, allow_abbrev=False)
        options.add_argument("name")
        options.add_argument("--service", action="append", default=[])
        options.add_argument("--manufacturer", action="append", default=[])
        options.add_argument("--service-data", action="append", default=[])
        options.add_argument("--tx-power", action="store_true")
        self.asked = options.parse_args(words)

    @staticmethod
    def data(items, key):
        pairs = (item.split("=", 1) for item in items)
        return {key(name): Variant("ay", bytes.fromhex(data)) for name, data in pairs}

    @dbus_property(access=PropertyAccess.READ)
    def Type(self) -> "s":
        return "peripheral"

    @dbus_property(access=PropertyAccess.READ)
    def LocalName(self) -> "s":
        return self.asked.name

    @dbus_property(access=PropertyAccess.READ)
    def ServiceUUIDs(self) -> "as":
        return self.asked.service

    @dbus_property(access=PropertyAccess.READ)
    def ManufacturerData(self) -> "a{qv}":
        return self.data(self.asked.manufacturer, lambda company: int(company, 0))

    @dbus_property(access=PropertyAccess.READ)
    def ServiceData(self) -> "a{sv}":
        return self.data(self.asked.service_data, str)

    @dbus_property(access=PropertyAccess.READ)
    def Discoverable(self) -> "b":
        return True

    @dbus_property(access=PropertyAccess.READ)
    def Includes(self) -> "as":
        return ["tx-power"] if self.asked.tx_power else []

    @method()
    def Release(self):
        pass


def live(module, arguments, log):
    """A program that takes orders, in a process of its own, forked from one that has loaded all modules."""
    with open(log, "ab") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    asyncio.run(importlib.import_module(module).main(*arguments))


class Lab(PairingOrders):
    def __init__(self, state, controllers):
        self.state, self.out = state, os.environ["RADIO_OUT"]
        self.adapters = [f"hci{number}" for number in range(controllers)]
        self.advertised = {}  # by adapter
        self.bluetoothd = None
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["__main__", "bluetoothctl", "central", "peripheral"])
        self.programs = {}
        self.served = None  # the peripheral's description and address
        self.btmon = None

    async def begin(self):
        self.bus = await MessageBus(bus_type=BusType.SYSTEM).connect()

    # --- The bus ---

    async def call(self, path, interface, member, signature="", *body, destination="org.bluez"):
        answer = await self.bus.call(
            Message(destination=destination, path=path, interface=interface, member=member,
                    signature=signature, body=list(body))
        )
        if answer.message_type == MessageType.ERROR:
            raise Refused(f"{answer.error_name}: {' '.join(map(str, answer.body))}")
        return answer.body[0] if answer.body else None

    async def call_if_there(self, *call):
        """Where the device or its link may have gone by itself meanwhile."""
        try:
            await self.call(*call)
        except Refused:
            pass

    async def get(self, adapter, name, interface=ADAPTER):
        variant = await self.call(f"/org/bluez/{adapter}", "org.freedesktop.DBus.Properties", "Get", "ss", interface, name)
        return variant.value

    async def set_powered(self, adapter, is_on):
        """Is refused with the text "Disconnected" if a link ends at the moment at which the adapter is switched off."""
        properties = "org.freedesktop.DBus.Properties"
        await self.call(f"/org/bluez/{adapter}", properties, "Set", "ssv", ADAPTER, "Powered", Variant("b", is_on))

    async def until(self, step, *arguments):
        """Repeats what bluetoothd refuses, until it does not."""
        end = time.monotonic() + LIMIT
        while True:
            try:
                return await step(*arguments)
            except Refused as refusal:
                if self.bluetoothd.poll() is not None:
                    raise Refused(f"bluetoothd has ended with status {self.bluetoothd.returncode}") from refusal
                if time.monotonic() > end:
                    raise Refused(f"still after {LIMIT} s: {refusal}") from refusal
                await asyncio.sleep(0.05)

    # --- bluetoothd ---

    async def order_bluetoothd(self, what, *options):
        if self.runs() == (what == "start"):
            raise Refused(f"bluetoothd is {'already' if self.runs() else 'not'} running")
        if what != "start":
            self.bluetoothd.terminate() if what == "stop" else self.bluetoothd.kill()
            while self.runs():
                await asyncio.sleep(0.01)
        if what in ("start", "restart"):
            with open(f"{self.out}/bluetoothd.log", "ab") as log:
                self.bluetoothd = subprocess.Popen(
                    [BLUETOOTHD, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            for adapter in self.adapters:
                await self.until(self.set_powered, adapter, True)
            await self.renew_agent()

    def runs(self):
        return self.bluetoothd is not None and self.bluetoothd.poll() is None

    # --- Adapters ---

    async def order_property(self, adapter, name, interface=ADAPTER):
        value = await self.get(adapter, name, interface)
        if isinstance(value, list):
            return map(str, value)
        return [str(value).lower() if isinstance(value, bool) else str(value)]

    async def order_power(self, adapter, what):
        if what in ("on", "off"):
            await self.until(self.set_powered, adapter, what == "on")
        else:
            self.set_blocked(adapter, what == "block")

    @staticmethod
    def set_blocked(adapter, is_blocked):
        place = f"/sys/class/bluetooth/{adapter}"
        for name in os.listdir(place):
            if name.startswith("rfkill"):
                with open(f"{place}/{name}/soft", "w", encoding="ascii") as file:
                    file.write(str(int(is_blocked)))

    async def order_advertise(self, adapter, *words):
        advertisement = Advertisement(words)
        await self.order_silence(adapter)
        path = f"/radio_lab/{adapter}"
        self.bus.export(path, advertisement)
        self.advertised[adapter] = advertisement
        await self.call(f"/org/bluez/{adapter}", ADVERTISING, "RegisterAdvertisement", "oa{sv}", path, {})

    async def order_silence(self, adapter):
        advertisement = self.advertised.pop(adapter, None)
        if advertisement is not None:
            path = f"/radio_lab/{adapter}"
            try:
                await self.call(f"/org/bluez/{adapter}", ADVERTISING, "UnregisterAdvertisement", "o", path)
            except Refused:
                pass  # bluetoothd has been restarted, or refused to register it.
            self.bus.unexport(path, advertisement)

    async def order_air(self, adapter):
        return await air.listen(int(adapter.removeprefix("hci")))

    async def order_manage(self, adapter, command, parameters):
        await air.manage(int(adapter.removeprefix("hci")), int(command, 16), bytes.fromhex(parameters))

    async def order_monitor(self, what):
        # Also if it has crashed, as that of 5.66 has: the next order starts another one.
        running, self.btmon = self.btmon, None
        shown = await self.end_btmon(running) if running else ""
        if what == "stop":
            return filter(None, shown.split("\n"))
        self.btmon = Terminal("btmon")
        # The kernel reports the controllers that there are when btmon listens.
        await self.btmon.until("controllers", lambda: re.search("Open Index", self.btmon.shown))
        return None

    async def end_btmon(self, running):
        """What btmon has shown, with all that the adapters have sent and received until now."""
        air.note("the end")
        await running.until("end", lambda: re.search("= radio-lab: the end", running.shown))
        return await running.end()

    async def order_security(self, adapter="hci0"):
        """Ends btmon; what it has shown about the security of the adapter's links."""
        return btmon.security(await self.order_monitor("stop"), adapter)

    # --- Programs that take orders: peripheral.py, central.py and bluetoothctl.py ---

    def place(self, program):
        return f"{self.state}/{program}"

    def lives(self, program):
        return program in self.programs and self.programs[program].is_alive() and os.path.exists(self.place(program) + "/port")

    async def ask(self, program, *words):
        try:
            await ask(self.place(program), *words)
        except RuntimeError as failure:
            raise Refused(str(failure)) from None

    async def start(self, program, *arguments):
        await self.order_stop(program)
        place, log = self.place(program), f"{self.out}/{program}.log"
        process = self.processes.Process(target=live, args=(program, (*arguments, place), log), daemon=True)
        os.makedirs(place)
        self.programs[program] = process
        process.start()
        end = time.monotonic() + LIMIT
        while not os.path.exists(place + "/port"):
            if not process.is_alive() or time.monotonic() > end:
                with open(log, encoding="utf-8", errors="replace") as file:
                    raise Refused(f"the {program} did not come up: {' '.join(file.read().splitlines()[-3:])}")
            await asyncio.sleep(0.02)

    async def order_stop(self, program):
        process = self.programs.pop(program, None)
        if process is not None:
            process.terminate()
            process.join(END_LIMIT)
            process.kill()  # if it did not
            process.join()
            shutil.rmtree(self.place(program), ignore_errors=True)
            # bluetoothd drops what a connection has registered when that leaves the bus: it has, when this is answered.
            if self.runs():
                await self.until(self.get, "hci0", "Address")

    async def order_bluetoothctl(self, capability):
        await self.start("bluetoothctl", capability)

    async def order_central(self, adapter):
        await self.start("central", adapter)

    async def order_peripheral(self, path, adapter):
        with open(path, encoding="utf-8") as file:
            served = file.read(), await self.get(adapter, "Address")
        if self.lives("peripheral") and self.served == served:
            try:
                return await self.ask("peripheral", "renew")
            except (Refused, OSError):
                pass  # It has left the bus meanwhile.
        await self.start("peripheral", *served)
        self.served = served

    async def order_rest(self):
        if self.lives("peripheral"):
            await self.ask("peripheral", "silence")
            await self.ask("peripheral", "drop")

    # --- Where every test begins ---

    async def order_reset(self, *options):
        if not self.runs():
            await self.order_bluetoothd("start", *options)
        await self.order_stop("central")
        await self.order_stop("bluetoothctl")
        if self.btmon:
            running, self.btmon = self.btmon, None
            await running.end()
        await self.order_rest()
        await self.order_no_agent()
        for adapter in self.adapters:
            await self.order_silence(adapter)
            self.set_blocked(adapter, False)
            await self.until(self.set_powered, adapter, True)
            await self.order_privacy(adapter, "off")
        await self.order_forget()

    async def order_forget(self, adapter=""):
        """Removes the devices of an adapter, or of all, with their keys, also those that only the kernel has."""
        for path, interfaces in (await self.call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")).items():
            if "org.bluez.Device1" in interfaces and path.startswith(f"/org/bluez/{adapter}"):
                # 5.87 dies of RemoveDevice where there is a link.
                if interfaces["org.bluez.Device1"]["Connected"].value:
                    await self.call_if_there(path, "org.bluez.Device1", "Disconnect")
                await self.remove(path)
        for name in [adapter] if adapter else self.adapters:
            # No link keys, no long term keys, no identity resolving keys.
            for command, parameters in (("0012", "000000"), ("0013", "0000"), ("0030", "0000")):
                await self.order_manage(name, command, parameters)
        if adapter:
            await self.links_end()
        else:
            await self.end_links()

    async def links_end(self):
        """Waits until there is no link, and none is being made. The page after a bond (see below) lasts 5.12 s, and removes what
        has been bonded anew by then."""
        async with asyncio.timeout(LIMIT):
            while any(air.has_links(int(name.removeprefix("hci"))) for name in self.adapters):
                await asyncio.sleep(0.05)

    async def end_links(self):
        """Ends what is left of the links. After a bond bluetoothd pages the other end for its classic services; when the page
        fails, after 5.12 s, it removes the device, whatever link and keys that has by then."""
        for name in self.adapters:
            if air.has_links(int(name.removeprefix("hci"))):
                await self.until(self.set_powered, name, False)
                await self.until(self.set_powered, name, True)

    async def remove(self, path):
        """Removes a device with its keys, unless it has gone by itself."""
        try:
            await self.call(path.rpartition("/")[0], ADAPTER, "RemoveDevice", "o", path)
        except Refused as refusal:
            if "DoesNotExist" not in str(refusal):
                raise


async def main():
    state, controllers = sys.argv[1:]
    lab = Lab(state, int(controllers))
    await lab.begin()
    async with await take_orders(lab, lab.place("server")) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
