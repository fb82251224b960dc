// A device with services that can be connected, read and subscribed: what a central asks of bluetoothd.

#pragma once

#include <dbus/dbus.h>
#include <stddef.h>
#include <stdint.h>

#include "Flood.h"
#include "Properties.h"

/// Messages of any lengths, back to back in wire form.
struct burst {
    uint8_t *bytes;
    size_t length, capacity;
};

struct peripheral {
    struct device *device;
    size_t services, characteristics;
    /// What a connection makes appear, and what its end makes vanish behind the reply.
    struct burst appearance, disappearance;
    /// Our end of the socket of AcquireNotify, or -1.
    int socket;
};

/// So many services with so many characteristics each, every one readable and with notifications.
void peripheral_make(struct peripheral *peripheral, struct device *device, size_t services, size_t characteristics);

/// Answers a call to the device or to one of its attributes; false: it is another call.
dbus_bool_t peripheral_answer(DBusConnection *connection, DBusMessage *call, struct peripheral *peripheral);

/// Changes of the first characteristics' values, numbered in their first four bytes; the last of each has all ones there.
struct flood flood_notifications(const struct peripheral *peripherals, size_t count, size_t size, size_t total);

/// The same through the acquired socket, as fast as the other side reads. -1: nobody has acquired it.
int peripheral_send_packets(const struct peripheral *peripheral, size_t size, size_t total);
