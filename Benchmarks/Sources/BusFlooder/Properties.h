// What the pretend bluetoothd tells of an adapter and of its devices: one table per interface, so that Get, GetAll,
// GetManagedObjects and InterfacesAdded cannot disagree.

#pragma once

#include <dbus/dbus.h>
#include <stdint.h>

#define ADAPTER_PATH "/org/bluez/hci0"
#define MANUFACTURER_LENGTH 24

/// One device in the air. All have names and paths of the same length, so that their messages have one layout.
struct device {
    char path[48];
    char address[18];
    char name[16];
    int16_t rssi;
    uint8_t manufacturer[MANUFACTURER_LENGTH];
    /// As if bonded: some libraries connect without a scan only what is.
    dbus_bool_t is_paired;
    /// Connected, and its services resolved.
    dbus_bool_t is_connected;
};

struct adapter {
    dbus_bool_t discovering;
};

/// The address of the last device of every flood: whoever hears it has received all.
#define SENTINEL_ADDRESS "FF:FF:FF:FF:FF:FF"

void device_make(struct device *device, uint32_t number);
void device_make_sentinel(struct device *device);

/// What /org/bluez itself offers; it has no properties.
void append_service_interfaces(DBusMessageIter *into);
void append_adapter_interfaces(DBusMessageIter *into, const struct adapter *adapter);
void append_device_interfaces(DBusMessageIter *into, const struct device *device);

/// Appends one property as a variant, or all of an interface as a{sv}; false: there is no such interface or property.
dbus_bool_t append_adapter_property(DBusMessageIter *into, const struct adapter *adapter, const char *name);
dbus_bool_t append_device_property(DBusMessageIter *into, const struct device *device, const char *name);
void append_adapter_properties(DBusMessageIter *into, const struct adapter *adapter);
void append_device_properties(DBusMessageIter *into, const struct device *device);

/// The body of the update that BlueZ sends for an advertisement received again: RSSI and ManufacturerData.
void append_device_update(DBusMessageIter *into, const struct device *device);
