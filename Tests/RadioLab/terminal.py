"""A program of BlueZ's in a terminal of its own: bluetoothctl asks its questions there only, and btmon writes each line at
once.
"""

import asyncio
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

# What is in the output without being text: colours, movements of the cursor, and readline's marks around them.
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\x01\x02\x07]")
# The beginning of one, at the end of what was received.
PARTIAL = re.compile(r"\x1b(\[[0-9;?]*)?$")


class Terminal:
    LIMIT = 60

    def __init__(self, *command):
        self.master, terminal = pty.openpty()
        # Wide enough for readline not to move a line sideways.
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 500, 0, 0))
        self.process = subprocess.Popen(  # pylint: disable=consider-using-with  # end() does it
            command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True,
            env={**os.environ, "TERM": "dumb", "HOME": "/run"})
        os.close(terminal)
        self.command, self.shown, self.rest = command[0], "", ""
        self.has_ended = False
        self.news = asyncio.Condition()
        asyncio.get_running_loop().add_reader(self.master, self.receive)

    def receive(self):
        try:
            data = os.read(self.master, 65536)
        except OSError:  # The program has ended.
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(self.master)
            self.has_ended = True
        text = self.rest + data.decode(errors="replace")
        partial = PARTIAL.search(text)
        text, self.rest = (text[: partial.start()], partial.group(0)) if partial else (text, "")
        self.shown += CONTROL.sub("", text)
        asyncio.ensure_future(self.note())

    async def note(self):
        async with self.news:
            self.news.notify_all()

    async def until(self, what, search):
        """What `search` finds in the text, as soon as it finds something."""
        def is_over():
            return self.has_ended or search() is not None

        async with self.news:
            try:
                await asyncio.wait_for(self.news.wait_for(is_over), self.LIMIT)
            except TimeoutError:
                pass
        found = search()
        if found is None:
            raise RuntimeError(f"{self.command} shows no {what}: {self.shown[-400:]!r}")
        return found

    def type(self, line):
        os.write(self.master, line.encode() + b"\n")

    async def end(self):
        """Ends the program, and returns all that it has shown."""
        self.process.terminate()
        async with self.news:
            await self.news.wait_for(lambda: self.has_ended)
        self.process.wait()
        os.close(self.master)
        return self.shown
