// Answers to what scanners ask of bluetoothd before, during and after a flood.

#pragma once

#include <dbus/dbus.h>

#include "Peripheral.h"
#include "Properties.h"

/// All that there is: one adapter, and the devices announced so far.
struct room {
    struct adapter adapter;
    struct device *devices;
    size_t announced;
    /// The devices that can be connected: so many of the first ones.
    struct peripheral *peripherals;
    size_t connectable;
};

/// A libdbus filter; `data` is the room.
DBusHandlerResult answer_call(DBusConnection *connection, DBusMessage *call, void *data);
