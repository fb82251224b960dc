"""The radio lab's user of BlueZ's own program: `bluetoothctl` in a terminal, with a pairing agent, which shares no line with
BlueCap.

Forked by server.py; bin/radio-bluetoothctl explains the orders.
"""

import asyncio
import re
import signal

from orders import take_orders
from terminal import Terminal

QUESTIONS = re.compile(
    r"(?P<confirm>Confirm passkey \d+ \(yes/no\):)"
    r"|(?P<authorize>Accept pairing \(yes/no\):)"
    r"|(?P<enter>Enter passkey \(number in 0-999999\):)"
    r"|(?P<display>Passkey: \d{6})"
    r"|(?P<cancelled>Request canceled)"
)


class Bluetoothctl:
    def __init__(self, capability):
        self.terminal = Terminal("bluetoothctl", f"--agent={capability}")
        self.typed = self.read = 0  # Where in the text the last line was typed, and where the last question ends.
        self.open = None  # The question that readline shows again below each line that comes.

    def type(self, line):
        self.typed = len(self.terminal.shown)
        self.terminal.type(line)

    async def order_type(self, *words):
        self.type(" ".join(words))

    async def order_shows(self, pattern):
        wanted = re.compile(pattern)
        found = await self.terminal.until(pattern, lambda: wanted.search(self.terminal.shown, self.typed))
        return [found.group(0)]

    async def order_asked(self):
        def question():
            found = QUESTIONS.finditer(self.terminal.shown, self.read)
            return next((question for question in found if question.group(0) != self.open), None)

        found = await self.terminal.until("question", question)
        kind, number = found.lastgroup, re.search(r"\d{6}", found.group(0))
        self.read, self.open = found.end(), found.group(0) if kind in ("confirm", "authorize", "enter") else None
        return [f"{kind} {number.group(0)}" if kind in ("confirm", "display") else kind]

    async def order_answer(self, text):
        self.read, self.open = len(self.terminal.shown), None
        self.type(text)


async def main(capability, state):
    program = Bluetoothctl(capability)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await program.order_shows("Agent registered")
    _server = await take_orders(program, state)
    await ended.wait()
    # Its log, in the directory of --out.
    print(await program.terminal.end())
