"""Hears the advertising reports of a controller, byte for byte, beside the kernel's management interface: neither
bluetoothd nor BlueCap has a part in it, nor do BlueZ's own programs, which differ between its versions.

The kernel is asked to discover (mgmt-api.txt, Start Discovery), and its monitor channel gives the controller's events: the
reports of extended and of old scans (Bluetooth Core Specification 5.4, volume 4, part E, 7.7.65.13 and 7.7.65.2).
"""

import asyncio
import ctypes
import fcntl
import os
import socket
import struct

NO_CONTROLLER, MONITOR, CONTROL, LOGGING = 0xFFFF, 2, 3, 4
EVENT, LE_META = 3, 0x3E
OLD_REPORT, EXTENDED_REPORT = 0x02, 0x0D
START_DISCOVERY, STOP_DISCOVERY, LE_ADDRESSES = 0x0023, 0x0024, b"\x06"
COMMAND_COMPLETE, COMMAND_STATUS, DISCOVERING = 0x0001, 0x0002, 0x0013
LIMIT = 60
# The kernel's list of a controller's links (struct hci_conn_list_req), also of those that are being made.
GET_LINKS, LINK_SIZE, MOST_LINKS = 0x800448D4, 16, 20


def channel(number):
    """Python's own `bind` knows no channels."""
    opened = socket.socket(socket.AF_BLUETOOTH, socket.SOCK_RAW, socket.BTPROTO_HCI)
    address = struct.pack("<HHH", socket.AF_BLUETOOTH, NO_CONTROLLER, number)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.bind(opened.fileno(), address, len(address)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    opened.setblocking(False)
    return opened


def reports(event):
    """What a controller reported at once: whether it is a scan response, whether one follows, the address, the data."""
    subevent, count, position = event[2], event[3], 4
    for _ in range(count):
        if subevent == EXTENDED_REPORT:
            (kind,), address, length = struct.unpack_from("<H", event, position), position + 3, position + 23
            is_response, is_scannable = bool(kind & 0x08), bool(kind & 0x02)
        else:
            kind, address, length = event[position], position + 2, position + 8
            is_response, is_scannable = kind == 0x04, kind in (0x00, 0x02)
        data = event[length + 1 : length + 1 + event[length]]
        yield is_response, is_scannable, event[address : address + 6], data
        position = length + 1 + event[length] + (0 if subevent == EXTENDED_REPORT else 1)


class Discovery:
    """A discovery of the kernel's own, which begins anew when it ends: that is after 10.24 s."""

    def __init__(self, controller):
        self.controller, self.channel = controller, channel(CONTROL)

    def order(self, command):
        self.channel.send(struct.pack("<HHH", command, self.controller, len(LE_ADDRESSES)) + LE_ADDRESSES)

    async def keep_up(self):
        self.order(START_DISCOVERY)
        while True:
            packet = await asyncio.get_running_loop().sock_recv(self.channel, 65536)
            event, controller, _ = struct.unpack_from("<HHH", packet)
            if controller != self.controller:
                continue
            if event in (COMMAND_COMPLETE, COMMAND_STATUS):
                command, status = struct.unpack_from("<HB", packet, 6)
                if command == START_DISCOVERY and status != 0:
                    raise OSError(f"the kernel does not discover: status {status:#x} of the management interface")
            elif event == DISCOVERING and not packet[7]:
                self.order(START_DISCOVERY)

    async def end(self):
        self.order(STOP_DISCOVERY)
        while True:
            packet = await asyncio.get_running_loop().sock_recv(self.channel, 65536)
            event, _, _, command = struct.unpack_from("<HHHH", packet + b"\0\0")
            if event in (COMMAND_COMPLETE, COMMAND_STATUS) and command == STOP_DISCOVERY:
                break
        self.channel.close()


def note(text):
    """Puts a text into what the kernel's monitor channel gives, behind all that it has given until now: what a program logs.
    `btmon` shows it as "= radio-lab: TEXT"."""
    identifier, priority = b"radio-lab\0", 6
    message = bytes([priority, len(identifier)]) + identifier + text.encode() + b"\0"
    with channel(LOGGING) as log:
        log.send(struct.pack("<HHH", 0, NO_CONTROLLER, len(message)) + message)


async def manage(controller, command, parameters):
    """A command of the kernel's management interface (mgmt-api.txt), as `btmgmt` gives it."""
    control = channel(CONTROL)
    control.send(struct.pack("<HHH", command, controller, len(parameters)) + parameters)
    while True:
        packet = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(control, 65536), LIMIT)
        event, place, _, replied, status = struct.unpack_from("<HHHHB", packet + b"\0\0\0")
        if event in (COMMAND_COMPLETE, COMMAND_STATUS) and (place, replied) == (controller, command):
            break
    control.close()
    if status != 0:
        raise OSError(f"command {command:#06x} of the management interface: status {status:#04x}")


def has_links(controller):
    """Whether a controller has a link, or one is being made or ended."""
    links = bytearray(struct.pack("<HH", controller, MOST_LINKS) + bytes(MOST_LINKS * LINK_SIZE))
    with socket.socket(socket.AF_BLUETOOTH, socket.SOCK_RAW, socket.BTPROTO_HCI) as controllers:
        fcntl.ioctl(controllers, GET_LINKS, links)
    return struct.unpack_from("<HH", links)[1] > 0


async def hear(controller, monitor):
    """Lines, in the order in which they came first: when each scannable advertisement has its scan response."""
    lines, scannable, answered = [], set(), set()
    while not lines or scannable - answered:
        packet = await asyncio.get_running_loop().sock_recv(monitor, 65536)
        kind, place, _ = struct.unpack_from("<HHH", packet)
        event = packet[6:]
        if place != controller or kind != EVENT or len(event) < 4 or event[0] != LE_META:
            continue
        if event[2] not in (OLD_REPORT, EXTENDED_REPORT):
            continue
        for is_response, is_scannable, address, data in reports(event):
            if is_response:
                answered.add(address)
            elif is_scannable:
                scannable.add(address)
            text = ":".join(f"{byte:02X}" for byte in reversed(address))
            line = f"{text} {'response' if is_response else 'advertisement'} {data.hex()}"
            if line not in lines:
                lines.append(line)
    return lines


async def listen(controller):
    monitor, discovery = channel(MONITOR), Discovery(controller)
    hearing = asyncio.ensure_future(hear(controller, monitor))
    keeping = asyncio.ensure_future(discovery.keep_up())
    try:
        done, _ = await asyncio.wait((hearing, keeping), timeout=LIMIT, return_when=asyncio.FIRST_COMPLETED)
        if not done:
            raise TimeoutError(f"nothing was heard in {LIMIT} s, or no scan response to it")
        return done.pop().result()
    finally:
        for task in (hearing, keeping):
            task.cancel()
        await asyncio.gather(hearing, keeping, return_exceptions=True)
        monitor.close()
        await discovery.end()
