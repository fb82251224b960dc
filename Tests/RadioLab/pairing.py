"""Pairings in the radio lab: the agent of the peripheral's user, and what only the kernel's management interface can set.

Orders of server.py. bluetoothd asks the agent about the peripheral's end of each pairing, because it is the default agent, and
about the central's end of those that no program has asked for.
"""

import asyncio
import os

from dbus_fast import BusType, DBusError, Message, MessageType
from dbus_fast.aio import MessageBus
from dbus_fast.service import ServiceInterface, method

from air import manage

MANAGER, PATH = "org.bluez.AgentManager1", "/radio_lab/agent"
CAPABILITIES = ["DisplayOnly", "DisplayYesNo", "KeyboardOnly", "NoInputNoOutput", "KeyboardDisplay"]
DISCONNECT, SET_CAPABILITY, SET_PRIVACY = 0x0014, 0x0018, 0x002F
# Seconds that a user who is late takes, and within which a passkey is displayed.
LATE, LIMIT = 3, 60


async def set_capability(adapter, capability):
    """Until the default agent changes, or the adapter is switched on."""
    controller = int(adapter.removeprefix("hci"))
    await manage(controller, SET_CAPABILITY, bytes([CAPABILITIES.index(capability)]))


async def set_privacy(adapter, is_on):
    """The adapter is off."""
    controller = int(adapter.removeprefix("hci"))
    await manage(controller, SET_PRIVACY, bytes([is_on]) + (os.urandom(16) if is_on else bytes(16)))


class Agent(ServiceInterface):
    """What the user does is one of: accept, acceptLate, reject, never, wrongPasskey."""

    def __init__(self, behaviour):
        super().__init__("org.bluez.Agent1")
        self.behaviour, self.journal = behaviour, []
        loop = asyncio.get_running_loop()
        self.displayed, self.entered = loop.create_future(), loop.create_future()

    async def register(self, capability):
        """On a connection of its own: bluetoothd has one agent for each."""
        self.bus = await MessageBus(bus_type=BusType.SYSTEM).connect()
        self.bus.export(PATH, self)
        await self.call("RegisterAgent", "os", PATH, capability)
        await self.call("RequestDefaultAgent", "o", PATH)

    async def call(self, member, signature, *body):
        answer = await self.bus.call(
            Message(destination="org.bluez", path="/org/bluez", interface=MANAGER, member=member,
                    signature=signature, body=list(body))
        )
        if answer.message_type == MessageType.ERROR:
            raise DBusError(answer.error_name, str(answer.body))

    def leave(self):
        self.bus.disconnect()

    async def answer(self):
        if self.behaviour == "never":
            await asyncio.Event().wait()
        if self.behaviour == "acceptLate":
            await asyncio.sleep(LATE)
        if self.behaviour == "reject":
            raise DBusError("org.bluez.Error.Rejected", "The user of the peripheral says no.")

    @method()
    async def RequestConfirmation(self, device: "o", passkey: "u"):
        self.journal.append(f"RequestConfirmation {passkey:06}")
        await self.answer()

    @method()
    async def RequestAuthorization(self, device: "o"):
        self.journal.append("RequestAuthorization")
        await self.answer()

    @method()
    async def RequestPasskey(self, device: "o") -> "u":
        self.journal.append("RequestPasskey")
        await self.answer()
        passkey = await asyncio.shield(self.entered)
        return (passkey + 1) % 1_000_000 if self.behaviour == "wrongPasskey" else passkey

    @method()
    async def DisplayPasskey(self, device: "o", passkey: "u", entered: "q"):
        self.journal.append("DisplayPasskey")
        if not self.displayed.done():
            self.displayed.set_result(passkey)

    @method()
    async def Cancel(self):
        self.journal.append("Cancel")

    @method()
    async def Release(self):
        self.journal.append("Release")


class PairingOrders:
    """Those of the lab's server that are about pairings."""

    agent, agent_words, private, foreign = None, (), set(), None

    async def order_agent(self, capability, central, behaviour):
        """Registers the agent of hci1's user; hci0 has the capability of the central's user. Both keep what they have until
        the default agent changes."""
        await self.order_no_agent()
        self.agent, self.agent_words = Agent(behaviour), (capability, central, behaviour)
        await self.agent.register(capability)
        # RequestDefaultAgent has set it for each adapter.
        for adapter, theirs in (("hci0", central), ("hci1", capability)):
            await set_capability(adapter, theirs)

    async def order_no_agent(self):
        if self.agent is not None:
            self.agent.leave()
            self.agent = None

    async def renew_agent(self):
        """bluetoothd is another one."""
        if self.agent is not None:
            await self.order_agent(*self.agent_words)

    async def order_agent_journal(self):
        return list(self.agent.journal) if self.agent else []

    async def order_agent_passkey(self):
        """What the peripheral displays, as soon as it does."""
        async with asyncio.timeout(LIMIT):
            return [f"{await asyncio.shield(self.agent.displayed):06}"]

    async def order_agent_enter(self, passkey):
        self.agent.entered.set_result(int(passkey))

    async def order_capability(self, adapter, capability):
        await set_capability(adapter, capability)

    async def order_privacy(self, adapter, what):
        if (adapter in self.private) == (what == "on"):
            return
        await self.until(self.set_powered, adapter, False)
        await set_privacy(adapter, what == "on")
        await self.until(self.set_powered, adapter, True)
        self.private = self.private ^ {adapter}

    async def order_cut(self, adapter, other):
        """Ends the link of an adapter to another one. bluetoothd's Disconnect does not, while a question of a pairing is open:
        it stays without a reply until the Security Manager's 30 s are over (5.66, and 5.82 with a link that Pair has made)."""
        address = bytes.fromhex((await self.get(other, "Address")).replace(":", ""))
        await manage(int(adapter.removeprefix("hci")), DISCONNECT, bytes(reversed(address)) + b"\x01")

    async def order_pair(self, device):
        """hci0 begins to pair with an adapter, for a program without an agent."""
        path = f"/org/bluez/hci0/dev_{(await self.get(device, 'Address')).replace(':', '_')}"
        self.foreign = asyncio.ensure_future(self.call_if_there(path, "org.bluez.Device1", "Pair"))

    async def order_call_agents(self, path):
        """Calls an agent at that path in each program, as a program does that is not bluetoothd; what they answer."""
        bus, answers = "org.freedesktop.DBus", []
        for name in await self.call("/org/freedesktop/DBus", bus, "ListNames", destination=bus):
            if not name.startswith(":") or name == self.bus.unique_name:
                continue
            answer = await asyncio.wait_for(
                self.bus.call(
                    Message(destination=name, path=path, interface="org.bluez.Agent1", member="RequestAuthorization",
                            signature="o", body=["/org/bluez/hci0/dev_00_00_00_00_00_00"])), LIMIT)
            if answer.message_type != MessageType.ERROR:
                answers.append("agreed")
            elif answer.error_name.rpartition(".")[2] not in ("UnknownObject", "UnknownMethod", "ServiceUnknown"):
                answers.append(answer.error_name)
        return answers
