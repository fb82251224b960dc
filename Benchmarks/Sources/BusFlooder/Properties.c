#include "Properties.h"

#include <stdio.h>
#include <string.h>

// Values

static void variant_basic(DBusMessageIter *into, int type, const void *value) {
    const char signature[2] = {(char)type, 0};
    DBusMessageIter variant;
    dbus_message_iter_open_container(into, DBUS_TYPE_VARIANT, signature, &variant);
    dbus_message_iter_append_basic(&variant, type, value);
    dbus_message_iter_close_container(into, &variant);
}

static void variant_string(DBusMessageIter *into, const char *value) { variant_basic(into, DBUS_TYPE_STRING, &value); }

static void variant_bool(DBusMessageIter *into, dbus_bool_t value) { variant_basic(into, DBUS_TYPE_BOOLEAN, &value); }

static void variant_uint32(DBusMessageIter *into, uint32_t value) { variant_basic(into, DBUS_TYPE_UINT32, &value); }

static void variant_strings(DBusMessageIter *into, const char *const *values, size_t count) {
    DBusMessageIter variant, array;
    dbus_message_iter_open_container(into, DBUS_TYPE_VARIANT, "as", &variant);
    dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, "s", &array);
    for (size_t i = 0; i < count; i++) dbus_message_iter_append_basic(&array, DBUS_TYPE_STRING, &values[i]);
    dbus_message_iter_close_container(&variant, &array);
    dbus_message_iter_close_container(into, &variant);
}

/// A variant that holds a dictionary with one entry, key → variant of bytes: ManufacturerData and ServiceData.
static void variant_data(
    DBusMessageIter *into, const char *signature, int key_type, const void *key, const uint8_t *bytes, int length) {
    DBusMessageIter variant, array, entry, value, data;
    dbus_message_iter_open_container(into, DBUS_TYPE_VARIANT, signature, &variant);
    dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, signature + 1, &array);
    dbus_message_iter_open_container(&array, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
    dbus_message_iter_append_basic(&entry, key_type, key);
    dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, "ay", &value);
    dbus_message_iter_open_container(&value, DBUS_TYPE_ARRAY, "y", &data);
    dbus_message_iter_append_fixed_array(&data, DBUS_TYPE_BYTE, &bytes, length);
    dbus_message_iter_close_container(&value, &data);
    dbus_message_iter_close_container(&entry, &value);
    dbus_message_iter_close_container(&array, &entry);
    dbus_message_iter_close_container(&variant, &array);
    dbus_message_iter_close_container(into, &variant);
}

// Devices

void device_make(struct device *device, uint32_t number) {
    *device = (struct device){0};
    const unsigned high = number >> 16 & 0xFF, middle = number >> 8 & 0xFF, low = number & 0xFF;
    snprintf(device->address, sizeof device->address, "C0:98:E5:%02X:%02X:%02X", high, middle, low);
    snprintf(device->path, sizeof device->path, ADAPTER_PATH "/dev_C0_98_E5_%02X_%02X_%02X", high, middle, low);
    snprintf(device->name, sizeof device->name, "Sensor %06u", (unsigned)number % 1000000);
    device->rssi = (int16_t)(-40 - (int)(number % 50));
    for (uint32_t i = 0; i < MANUFACTURER_LENGTH; i++) device->manufacturer[i] = (uint8_t)(number + 7 * i);
}

void device_make_sentinel(struct device *device) {
    device_make(device, 0);
    memcpy(device->address, SENTINEL_ADDRESS, sizeof SENTINEL_ADDRESS);
    strcpy(device->path, ADAPTER_PATH "/dev_FF_FF_FF_FF_FF_FF");
}

// Tables

struct property {
    const char *name;
    void (*append)(DBusMessageIter *into, const void *object);
};

#define PROPERTY_OF(owner, function, statement) \
    static void function(DBusMessageIter *into, const void *object) { \
        const struct owner *self = object; \
        (void)self; \
        statement; \
    }

PROPERTY_OF(device, device_address, variant_string(into, self->address))
PROPERTY_OF(device, device_address_type, variant_string(into, "random"))
PROPERTY_OF(device, device_name, variant_string(into, self->name))
PROPERTY_OF(device, device_false, variant_bool(into, FALSE))
PROPERTY_OF(device, device_paired, variant_bool(into, self->is_paired))
PROPERTY_OF(device, device_connected, variant_bool(into, self->is_connected))
PROPERTY_OF(device, device_rssi, variant_basic(into, DBUS_TYPE_INT16, &self->rssi))

static void device_uuids(DBusMessageIter *into, const void *object) {
    (void)object;
    static const char *const uuids[] = {
        "0000180f-0000-1000-8000-00805f9b34fb", "f000aa00-0451-4000-b000-000000000000"};
    variant_strings(into, uuids, 2);
}

static void device_adapter(DBusMessageIter *into, const void *object) {
    (void)object;
    const char *path = ADAPTER_PATH;
    variant_basic(into, DBUS_TYPE_OBJECT_PATH, &path);
}

static void device_manufacturer_data(DBusMessageIter *into, const void *object) {
    const struct device *self = object;
    const uint16_t company = 0x004C;
    variant_data(into, "a{qv}", DBUS_TYPE_UINT16, &company, self->manufacturer, MANUFACTURER_LENGTH);
}

static void device_service_data(DBusMessageIter *into, const void *object) {
    (void)object;
    const char *uuid = "0000180f-0000-1000-8000-00805f9b34fb";
    static const uint8_t level[1] = {87};
    variant_data(into, "a{sv}", DBUS_TYPE_STRING, &uuid, level, 1);
}

static void device_tx_power(DBusMessageIter *into, const void *object) {
    (void)object;
    const int16_t power = 4;
    variant_basic(into, DBUS_TYPE_INT16, &power);
}

/// What BlueZ 5.66 says of a device it has just received, in its order.
static const struct property device_table[] = {
    {"Address", device_address}, {"AddressType", device_address_type}, {"Name", device_name}, {"Alias", device_name},
    {"Paired", device_paired}, {"Bonded", device_paired}, {"Trusted", device_false}, {"Blocked", device_false},
    {"LegacyPairing", device_false}, {"RSSI", device_rssi}, {"Connected", device_connected}, {"UUIDs", device_uuids},
    {"Adapter", device_adapter}, {"ManufacturerData", device_manufacturer_data}, {"ServiceData", device_service_data},
    {"TxPower", device_tx_power}, {"ServicesResolved", device_connected},
};

PROPERTY_OF(adapter, adapter_address, variant_string(into, "00:1A:7D:DA:71:13"))
PROPERTY_OF(adapter, adapter_address_type, variant_string(into, "public"))
PROPERTY_OF(adapter, adapter_name, variant_string(into, "flooder"))
PROPERTY_OF(adapter, adapter_class, variant_uint32(into, 0))
PROPERTY_OF(adapter, adapter_true, variant_bool(into, TRUE))
PROPERTY_OF(adapter, adapter_false, variant_bool(into, FALSE))
PROPERTY_OF(adapter, adapter_timeout, variant_uint32(into, 0))
PROPERTY_OF(adapter, adapter_discovering, variant_bool(into, self->discovering))
PROPERTY_OF(adapter, adapter_modalias, variant_string(into, "usb:v1D6Bp0246d0542"))

static void adapter_uuids(DBusMessageIter *into, const void *object) {
    (void)object;
    static const char *const uuids[] = {
        "00001801-0000-1000-8000-00805f9b34fb", "00001800-0000-1000-8000-00805f9b34fb"};
    variant_strings(into, uuids, 2);
}

static void adapter_roles(DBusMessageIter *into, const void *object) {
    (void)object;
    static const char *const roles[] = {"central", "peripheral"};
    variant_strings(into, roles, 2);
}

static const struct property adapter_table[] = {
    {"Address", adapter_address}, {"AddressType", adapter_address_type}, {"Name", adapter_name},
    {"Alias", adapter_name}, {"Class", adapter_class}, {"Powered", adapter_true}, {"Discoverable", adapter_false},
    {"DiscoverableTimeout", adapter_timeout}, {"Pairable", adapter_false}, {"PairableTimeout", adapter_timeout},
    {"Discovering", adapter_discovering}, {"UUIDs", adapter_uuids}, {"Modalias", adapter_modalias},
    {"Roles", adapter_roles},
};

#define COUNT(table) (sizeof table / sizeof table[0])

// Readers of the tables

static void append_all(DBusMessageIter *into, const struct property *table, size_t count, const void *object) {
    DBusMessageIter properties, entry;
    dbus_message_iter_open_container(into, DBUS_TYPE_ARRAY, "{sv}", &properties);
    for (size_t i = 0; i < count; i++) {
        dbus_message_iter_open_container(&properties, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
        dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &table[i].name);
        table[i].append(&entry, object);
        dbus_message_iter_close_container(&properties, &entry);
    }
    dbus_message_iter_close_container(into, &properties);
}

static dbus_bool_t append_one(
    DBusMessageIter *into, const struct property *table, size_t count, const void *object, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(table[i].name, name) != 0) continue;
        table[i].append(into, object);
        return TRUE;
    }
    return FALSE;
}

static void append_interface(
    DBusMessageIter *interfaces, const char *name, const struct property *table, size_t count, const void *object) {
    DBusMessageIter entry;
    dbus_message_iter_open_container(interfaces, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
    dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &name);
    append_all(&entry, table, count, object);
    dbus_message_iter_close_container(interfaces, &entry);
}

/// The object's own interface between the two that BlueZ's gdbus gives to every object.
static void append_interfaces(
    DBusMessageIter *into, const char *name, const struct property *table, size_t count, const void *object) {
    DBusMessageIter interfaces;
    dbus_message_iter_open_container(into, DBUS_TYPE_ARRAY, "{sa{sv}}", &interfaces);
    append_interface(&interfaces, "org.freedesktop.DBus.Introspectable", table, 0, object);
    append_interface(&interfaces, name, table, count, object);
    append_interface(&interfaces, "org.freedesktop.DBus.Properties", table, 0, object);
    dbus_message_iter_close_container(into, &interfaces);
}

void append_service_interfaces(DBusMessageIter *into) {
    append_interfaces(into, "org.bluez.AgentManager1", NULL, 0, NULL);
}

void append_adapter_interfaces(DBusMessageIter *into, const struct adapter *adapter) {
    append_interfaces(into, "org.bluez.Adapter1", adapter_table, COUNT(adapter_table), adapter);
}

void append_device_interfaces(DBusMessageIter *into, const struct device *device) {
    append_interfaces(into, "org.bluez.Device1", device_table, COUNT(device_table), device);
}

dbus_bool_t append_adapter_property(DBusMessageIter *into, const struct adapter *adapter, const char *name) {
    return append_one(into, adapter_table, COUNT(adapter_table), adapter, name);
}

dbus_bool_t append_device_property(DBusMessageIter *into, const struct device *device, const char *name) {
    return append_one(into, device_table, COUNT(device_table), device, name);
}

void append_adapter_properties(DBusMessageIter *into, const struct adapter *adapter) {
    append_all(into, adapter_table, COUNT(adapter_table), adapter);
}

void append_device_properties(DBusMessageIter *into, const struct device *device) {
    append_all(into, device_table, COUNT(device_table), device);
}

void append_device_update(DBusMessageIter *into, const struct device *device) {
    static const struct property received[] = {{"RSSI", device_rssi}, {"ManufacturerData", device_manufacturer_data}};
    append_all(into, received, COUNT(received), device);
}
