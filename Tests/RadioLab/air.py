"""Prints the advertising reports of a controller in a record of btmon, as soon as there are any.

Usage: air.py FILE CONTROLLER-NUMBER SECONDS     (how long it waits at most)

One line for each report: the address, "advertisement" or "response", and the data as a row of hexadecimal bytes. The
record is btsnoop's, with the monitor's header (datalink 2001); the reports are those of extended and of old scans
(Bluetooth Core Specification 5.4, volume 4, part E, 7.7.65.13 and 7.7.65.2).
"""

import struct
import sys
import time

EVENT, LE_META = 3, 0x3E
OLD_REPORT, EXTENDED_REPORT = 0x02, 0x0D
RESPONSE = 0x08


def packets(record):
    position = 16
    while position + 24 <= len(record):
        _, length, flags = struct.unpack_from(">III", record, position)
        if position + 24 + length > len(record):
            return
        yield flags >> 16, flags & 0xFFFF, record[position + 24 : position + 24 + length]
        position += 24 + length


def reports(event):
    """Pairs of whether it is a scan response, and the rest from the address on, of what a controller said."""
    subevent, count, position = event[2], event[3], 4
    for _ in range(count):
        if subevent == EXTENDED_REPORT:
            (kind,), address, length = struct.unpack_from("<H", event, position), position + 3, position + 23
            is_response = bool(kind & RESPONSE)
        else:
            kind, address, length = event[position], position + 2, position + 8
            is_response = kind == 0x04
        data = event[length + 1 : length + 1 + event[length]]
        yield is_response, event[address : address + 6], data
        position = length + 1 + event[length] + (0 if subevent == EXTENDED_REPORT else 1)


def heard(path, controller):
    with open(path, "rb") as file:
        record = file.read()
    for place, kind, packet in packets(record):
        if place != controller or kind != EVENT or len(packet) < 4 or packet[0] != LE_META:
            continue
        if packet[2] in (OLD_REPORT, EXTENDED_REPORT):
            for is_response, address, data in reports(packet):
                text = ":".join(f"{byte:02X}" for byte in reversed(address))
                yield f"{text} {'response' if is_response else 'advertisement'} {data.hex()}"


def main():
    path, controller, end = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
    while not any(heard(path, controller)):
        if time.monotonic() > end:
            sys.exit("nobody was heard")
        time.sleep(0.02)
    # A controller reports advertisement and scan response at once; the record may have been read between the two.
    time.sleep(0.02)
    print("\n".join(heard(path, controller)))


main()
