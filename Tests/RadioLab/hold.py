"""Holds the machine's clock back while the machine waits for the host's file system.

When all programs of the machine wait, its clock goes on at once to the time of the next timer: that is as it should be when they
wait for a timer or for one another, and not when one of them waits for the host to read a file. A page of a program that was not
used before then costs seconds of the machine's time, or more than ten on a busy host, and calls to that program time out.
So while the kernel has an open request to the host, this program keeps the processor busy, at a priority below all others: the
clock then counts the instructions that this takes.

Usage: hold.py TRACEFS

Started by guest; it ends with the machine. The kernel tells of each request and each reply (trace events 9p_client_req, …_res).
"""

import os
import re
import sys

# The first words name a connection to the host and a number that the kernel gives to another request after the reply.
EVENT = re.compile(rb"client (\d+) (request|response) \S+ tag +(\d+)")


def main():
    tracing = sys.argv[1]
    for event in ("9p_client_req", "9p_client_res"):
        with open(f"{tracing}/events/9p/{event}/enable", "w", encoding="ascii") as file:
            file.write("1")
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    pipe = os.open(f"{tracing}/trace_pipe", os.O_RDONLY)
    requests, rest = set(), b""
    while True:
        # Without an open request the program waits here; with one it looks again and again.
        os.set_blocking(pipe, not requests)
        try:
            lines = (rest + os.read(pipe, 65536)).split(b"\n")
        except BlockingIOError:
            continue
        rest = lines.pop()
        for client, kind, tag in EVENT.findall(b"\n".join(lines)):
            (requests.add if kind == b"request" else requests.discard)((client, tag))


if __name__ == "__main__":
    main()
