"""How the radio lab's Python programs take orders: a line each, over a socket on this machine.

An order is a method order_NAME of the target; the rest of the line are its arguments, with tabs between. What it returns is
printed, a line each, and then "ok"; "failed: …" if it raises, or takes longer than LIMIT. One order runs at a time.
"""

import asyncio
import os

# Seconds for an order, with its waiting for those before it: a caller, who waits for 120, learns what failed.
LIMIT = 110


async def take_orders(target, state):
    """Writes the port to STATE/port, and answers from then on."""
    turn = asyncio.Lock()

    async def answer(reader, writer):
        while words := (await reader.readline()).decode().rstrip("\n").split("\t"):
            if words == [""]:
                break
            limit = asyncio.timeout(LIMIT)
            try:
                order = getattr(target, "order_" + words[0].replace("-", "_"))
                async with limit, turn:
                    lines = [*(await order(*words[1:]) or []), "ok"]
            except Exception as error:  # pylint: disable=broad-except  # whatever it is, the test has to read it
                lines = [f"failed: not done within {LIMIT} s" if limit.expired() else f"failed: {error!r}"]
            writer.write(("\n".join(lines) + "\n").encode())
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    with open(f"{state}/port.new", "w", encoding="ascii") as file:
        file.write(f"{server.sockets[0].getsockname()[1]}\n")
    os.rename(f"{state}/port.new", f"{state}/port")  # so that no reader finds half of it
    return server


async def ask(state, *words):
    """Gives an order to the program whose port is in STATE/port; raises what it says of a failure."""
    with open(f"{state}/port", encoding="ascii") as file:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(file.read()))
    try:
        writer.write(("\t".join(words) + "\n").encode())
        while (line := (await reader.readline()).decode().rstrip("\n")) != "ok":
            if not line or line.startswith("failed:"):
                raise RuntimeError(line or "no answer")
    finally:
        writer.close()
