// Signals that were put into wire form beforehand, so that sending costs next to nothing and the bus is the limit.

#pragma once

#include <dbus/dbus.h>
#include <stddef.h>
#include <stdint.h>

#include "Properties.h"

/// Signals of one length, back to back in wire form, the sentinels last.
struct flood {
    uint8_t *bytes;
    size_t message_length;
    size_t devices, sentinels;
    size_t total;
    /// Where RSSI and the manufacturer's bytes stand within each message; updates change both, as a real radio would.
    size_t rssi_offset, manufacturer_offset;
    /// Where the number of a notification stands within its message.
    size_t number_offset;
};

/// InterfacesAdded for every device, each once, then for the sentinel.
struct flood flood_discovery(const struct device *devices, size_t count, const struct device *sentinel);

/// PropertiesChanged with RSSI and ManufacturerData, `total` of them round robin over the devices, then the sentinel's.
struct flood flood_updates(const struct device *devices, size_t count, size_t total, const struct device *sentinel);

/// Signals round robin again and again, with their numbers where `mark` stands now. Last of all is one of each whose number
/// is all ones.
struct flood flood_of(DBusMessage **messages, size_t count, const void *mark, size_t mark_length, size_t total);

/// Writes everything, however little the descriptor takes at a time.
void write_all(int descriptor, const uint8_t *bytes, size_t length);

/// Sends it all, `rate` signals a second, or with 0 as fast as the bus takes it. The bus stops reading when too much is under
/// way, so nothing is lost.
void flood_send(struct flood *flood, DBusConnection *connection, size_t rate);

void flood_free(struct flood *flood);
