#define _GNU_SOURCE

#include "Peripheral.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LONGEST_VALUE 512
#define MTU 517
#define MOST_SERVICES 100

struct attribute {
    const struct peripheral *peripheral;
    char path[80];
    size_t number;
    dbus_bool_t is_service;
};

static struct attribute attribute_at(const struct peripheral *peripheral, size_t service, size_t characteristic) {
    struct attribute attribute = {.peripheral = peripheral, .is_service = characteristic == 0};
    // A service takes its own handle, then two for each characteristic.
    const unsigned handle = 0x10 + (unsigned)(service * (2 * peripheral->characteristics + 1));
    attribute.number = characteristic == 0 ? service : service * 0x100 + characteristic;
    const int length =
        snprintf(attribute.path, sizeof attribute.path, "%s/service%04x", peripheral->device->path, handle);
    if (characteristic > 0) {
        snprintf(
            attribute.path + length, sizeof attribute.path - (size_t)length, "/char%04x",
            handle + 2 * (unsigned)characteristic - 1);
    }
    return attribute;
}

// Properties

static void open_entry(DBusMessageIter *properties, DBusMessageIter *entry, const char *name) {
    dbus_message_iter_open_container(properties, DBUS_TYPE_DICT_ENTRY, NULL, entry);
    dbus_message_iter_append_basic(entry, DBUS_TYPE_STRING, &name);
}

static void append_basic(DBusMessageIter *properties, const char *name, int type, const void *value) {
    const char signature[2] = {(char)type, 0};
    DBusMessageIter entry, variant;
    open_entry(properties, &entry, name);
    dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, signature, &variant);
    dbus_message_iter_append_basic(&variant, type, value);
    dbus_message_iter_close_container(&entry, &variant);
    dbus_message_iter_close_container(properties, &entry);
}

static void append_array(
    DBusMessageIter *properties, const char *name, const char *signature, const char *const *values, size_t count) {
    DBusMessageIter entry, variant, array;
    open_entry(properties, &entry, name);
    dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, signature, &variant);
    dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, signature + 1, &array);
    for (size_t i = 0; i < count; i++) dbus_message_iter_append_basic(&array, signature[1], &values[i]);
    dbus_message_iter_close_container(&variant, &array);
    dbus_message_iter_close_container(&entry, &variant);
    dbus_message_iter_close_container(properties, &entry);
}

static void append_value(DBusMessageIter *properties, const uint8_t *value, int length) {
    DBusMessageIter entry, variant, array;
    open_entry(properties, &entry, "Value");
    dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, "ay", &variant);
    dbus_message_iter_open_container(&variant, DBUS_TYPE_ARRAY, "y", &array);
    dbus_message_iter_append_fixed_array(&array, DBUS_TYPE_BYTE, &value, length);
    dbus_message_iter_close_container(&variant, &array);
    dbus_message_iter_close_container(&entry, &variant);
    dbus_message_iter_close_container(properties, &entry);
}

static void write_uuid(char text[37], const struct attribute *attribute) {
    snprintf(text, 37, "f000%04zx-0451-4000-b000-00000000000%d", attribute->number, !attribute->is_service);
}

static void append_uuid(DBusMessageIter *properties, const struct attribute *attribute) {
    char text[37];
    const char *uuid = text;
    write_uuid(text, attribute);
    append_basic(properties, "UUID", DBUS_TYPE_STRING, &uuid);
}

/// What BlueZ 5.66 says of a service and of a characteristic of a remote device, in its order.
static void append_attribute(DBusMessageIter *properties, const struct attribute *attribute) {
    static const char *const flags[] = {"read", "write", "notify"};
    const dbus_bool_t yes = TRUE, no = FALSE;
    const uint16_t mtu = MTU;
    const char *parent = attribute->peripheral->device->path;
    char service[sizeof attribute->path];
    append_uuid(properties, attribute);
    if (attribute->is_service) {
        append_basic(properties, "Device", DBUS_TYPE_OBJECT_PATH, &parent);
        append_basic(properties, "Primary", DBUS_TYPE_BOOLEAN, &yes);
        append_array(properties, "Includes", "ao", NULL, 0);
        return;
    }
    strcpy(service, attribute->path);
    *strrchr(service, '/') = 0;
    parent = service;
    append_basic(properties, "Service", DBUS_TYPE_OBJECT_PATH, &parent);
    append_value(properties, (const uint8_t *)"", 0);
    append_basic(properties, "Notifying", DBUS_TYPE_BOOLEAN, &no);
    append_array(properties, "Flags", "as", flags, sizeof flags / sizeof flags[0]);
    append_basic(properties, "NotifyAcquired", DBUS_TYPE_BOOLEAN, &no);
    append_basic(properties, "MTU", DBUS_TYPE_UINT16, &mtu);
}

static const char *interface_of(const struct attribute *attribute) {
    return attribute->is_service ? "org.bluez.GattService1" : "org.bluez.GattCharacteristic1";
}

// Signals

static DBusMessage *object_signal(const char *member, const char *path, DBusMessageIter *body) {
    DBusMessage *message = dbus_message_new_signal("/", "org.freedesktop.DBus.ObjectManager", member);
    dbus_message_iter_init_append(message, body);
    dbus_message_iter_append_basic(body, DBUS_TYPE_OBJECT_PATH, &path);
    return message;
}

static DBusMessage *added(const struct attribute *attribute) {
    static const char *const others[] = {"org.freedesktop.DBus.Introspectable", "org.freedesktop.DBus.Properties"};
    const char *names[] = {others[0], interface_of(attribute), others[1]};
    DBusMessageIter body, interfaces, entry, properties;
    DBusMessage *message = object_signal("InterfacesAdded", attribute->path, &body);
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "{sa{sv}}", &interfaces);
    for (int i = 0; i < 3; i++) {
        dbus_message_iter_open_container(&interfaces, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
        dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &names[i]);
        dbus_message_iter_open_container(&entry, DBUS_TYPE_ARRAY, "{sv}", &properties);
        if (i == 1) append_attribute(&properties, attribute);
        dbus_message_iter_close_container(&entry, &properties);
        dbus_message_iter_close_container(&interfaces, &entry);
    }
    dbus_message_iter_close_container(&body, &interfaces);
    return message;
}

static DBusMessage *removed(const struct attribute *attribute) {
    const char *name = interface_of(attribute);
    DBusMessageIter body, interfaces;
    DBusMessage *message = object_signal("InterfacesRemoved", attribute->path, &body);
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "s", &interfaces);
    dbus_message_iter_append_basic(&interfaces, DBUS_TYPE_STRING, &name);
    dbus_message_iter_close_container(&body, &interfaces);
    return message;
}

static DBusMessage *changed(const char *path, const char *interface, DBusMessageIter *body, DBusMessageIter *properties) {
    DBusMessage *message = dbus_message_new_signal(path, "org.freedesktop.DBus.Properties", "PropertiesChanged");
    dbus_message_iter_init_append(message, body);
    dbus_message_iter_append_basic(body, DBUS_TYPE_STRING, &interface);
    dbus_message_iter_open_container(body, DBUS_TYPE_ARRAY, "{sv}", properties);
    return message;
}

static void close_changed(DBusMessageIter *body, DBusMessageIter *properties) {
    DBusMessageIter invalidated;
    dbus_message_iter_close_container(body, properties);
    dbus_message_iter_open_container(body, DBUS_TYPE_ARRAY, "s", &invalidated);
    dbus_message_iter_close_container(body, &invalidated);
}

static DBusMessage *device_flag(const struct device *device, const char *name, dbus_bool_t value) {
    DBusMessageIter body, properties;
    DBusMessage *message = changed(device->path, "org.bluez.Device1", &body, &properties);
    append_basic(&properties, name, DBUS_TYPE_BOOLEAN, &value);
    close_changed(&body, &properties);
    return message;
}

/// With the end of discovery come the UUIDs of all services.
static DBusMessage *services_resolved(const struct peripheral *peripheral) {
    const dbus_bool_t yes = TRUE;
    char texts[MOST_SERVICES][37];
    const char *uuids[MOST_SERVICES];
    for (size_t service = 0; service < peripheral->services; service++) {
        const struct attribute attribute = attribute_at(peripheral, service, 0);
        write_uuid(texts[service], &attribute);
        uuids[service] = texts[service];
    }
    DBusMessageIter body, properties;
    DBusMessage *message = changed(peripheral->device->path, "org.bluez.Device1", &body, &properties);
    append_array(&properties, "UUIDs", "as", uuids, peripheral->services);
    append_basic(&properties, "ServicesResolved", DBUS_TYPE_BOOLEAN, &yes);
    close_changed(&body, &properties);
    return message;
}

static DBusMessage *value_changed(const char *path, const uint8_t *value, size_t size) {
    DBusMessageIter body, properties;
    DBusMessage *message = changed(path, "org.bluez.GattCharacteristic1", &body, &properties);
    append_value(&properties, value, (int)size);
    close_changed(&body, &properties);
    return message;
}

// Bursts

static void burst_append(struct burst *burst, DBusMessage *message) {
    char *bytes = NULL;
    int length = 0;
    dbus_message_set_serial(message, 1);
    if (!dbus_message_marshal(message, &bytes, &length)) abort();
    while (burst->length + (size_t)length > burst->capacity) {
        burst->capacity = burst->capacity ? burst->capacity * 2 : 4096;
        burst->bytes = realloc(burst->bytes, burst->capacity);
        if (burst->bytes == NULL) abort();
    }
    memcpy(burst->bytes + burst->length, bytes, (size_t)length);
    burst->length += (size_t)length;
    dbus_free(bytes);
    dbus_message_unref(message);
}

static void burst_send(const struct burst *burst, DBusConnection *connection) {
    int descriptor = -1;
    dbus_connection_flush(connection);
    if (dbus_connection_get_unix_fd(connection, &descriptor)) write_all(descriptor, burst->bytes, burst->length);
}

void peripheral_make(struct peripheral *peripheral, struct device *device, size_t services, size_t characteristics) {
    if (services > MOST_SERVICES) abort();
    *peripheral = (struct peripheral){
        .device = device, .services = services, .characteristics = characteristics, .socket = -1};
    burst_append(&peripheral->disappearance, device_flag(device, "Connected", FALSE));
    for (size_t service = 0; service < services; service++) {
        for (size_t characteristic = 0; characteristic <= characteristics; characteristic++) {
            const struct attribute attribute = attribute_at(peripheral, service, characteristic);
            burst_append(&peripheral->appearance, added(&attribute));
            burst_append(&peripheral->disappearance, removed(&attribute));
        }
    }
    burst_append(&peripheral->appearance, services_resolved(peripheral));
}

// Calls

static void post(DBusConnection *connection, DBusMessage *message) {
    dbus_connection_send(connection, message, NULL);
    dbus_message_unref(message);
}

static void answer(DBusConnection *connection, DBusMessage *call) {
    post(connection, dbus_message_new_method_return(call));
}

/// As bluetoothd does: the value is signalled, also when it is the same again, and then the call is answered.
static void read_value(DBusConnection *connection, DBusMessage *call) {
    static uint8_t value[20];
    const uint8_t *start = value;
    value[0]++;
    post(connection, value_changed(dbus_message_get_path(call), value, sizeof value));
    DBusMessage *reply = dbus_message_new_method_return(call);
    dbus_message_append_args(
        reply, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &start, (int)sizeof value, DBUS_TYPE_INVALID);
    post(connection, reply);
}

static void acquire_notify(DBusConnection *connection, DBusMessage *call, struct peripheral *peripheral) {
    int ends[2];
    const uint16_t mtu = MTU;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0) abort();
    if (peripheral->socket >= 0) close(peripheral->socket);
    peripheral->socket = ends[0];
    DBusMessage *reply = dbus_message_new_method_return(call);
    dbus_message_append_args(
        reply, DBUS_TYPE_UNIX_FD, &ends[1], DBUS_TYPE_UINT16, &mtu, DBUS_TYPE_INVALID);
    post(connection, reply);
    dbus_connection_flush(connection);
    close(ends[1]);
}

static void set_notifying(DBusConnection *connection, DBusMessage *call, dbus_bool_t on) {
    DBusMessageIter body, properties;
    DBusMessage *signal =
        changed(dbus_message_get_path(call), "org.bluez.GattCharacteristic1", &body, &properties);
    append_basic(&properties, "Notifying", DBUS_TYPE_BOOLEAN, &on);
    close_changed(&body, &properties);
    post(connection, signal);
    answer(connection, call);
}

dbus_bool_t peripheral_answer(DBusConnection *connection, DBusMessage *call, struct peripheral *peripheral) {
    struct device *device = peripheral->device;
    // The paths of all devices have one length.
    if (strncmp(dbus_message_get_path(call), device->path, strlen(device->path)) != 0) return FALSE;
    if (dbus_message_is_method_call(call, "org.bluez.Device1", "Connect")) {
        post(connection, device_flag(device, "Connected", TRUE));
        answer(connection, call);
        burst_send(&peripheral->appearance, connection);
        device->is_connected = TRUE;
    } else if (dbus_message_is_method_call(call, "org.bluez.Device1", "Disconnect")) {
        device->is_connected = FALSE;
        post(connection, device_flag(device, "ServicesResolved", FALSE));
        answer(connection, call);
        // A real one keeps its objects; here each connection shall find them anew.
        burst_send(&peripheral->disappearance, connection);
    } else if (dbus_message_is_method_call(call, "org.bluez.GattCharacteristic1", "ReadValue")) {
        read_value(connection, call);
    } else if (dbus_message_is_method_call(call, "org.bluez.GattCharacteristic1", "WriteValue")) {
        answer(connection, call);
    } else if (dbus_message_is_method_call(call, "org.bluez.GattCharacteristic1", "AcquireNotify")) {
        acquire_notify(connection, call, peripheral);
    } else if (dbus_message_is_method_call(call, "org.bluez.GattCharacteristic1", "StartNotify")) {
        set_notifying(connection, call, TRUE);
    } else if (dbus_message_is_method_call(call, "org.bluez.GattCharacteristic1", "StopNotify")) {
        set_notifying(connection, call, FALSE);
    } else {
        return FALSE;
    }
    return TRUE;
}

// Notifications

struct flood flood_notifications(const struct peripheral *peripherals, size_t count, size_t size, size_t total) {
    uint8_t value[LONGEST_VALUE] = {0xA5, 0x5A, 0xA5, 0x5A};
    if (count == 0 || size < sizeof(uint32_t) || size > sizeof value) return (struct flood){0};
    for (size_t i = sizeof(uint32_t); i < size; i++) value[i] = (uint8_t)i;
    DBusMessage **messages = malloc(count * sizeof *messages);
    if (messages == NULL) abort();
    for (size_t i = 0; i < count; i++) messages[i] = value_changed(attribute_at(&peripherals[i], 0, 1).path, value, size);
    const struct flood flood = flood_of(messages, count, value, sizeof(uint32_t), total);
    for (size_t i = 0; i < count; i++) dbus_message_unref(messages[i]);
    free(messages);
    return flood;
}

int peripheral_send_packets(const struct peripheral *peripheral, size_t size, size_t total) {
    uint8_t value[LONGEST_VALUE] = {0};
    if (peripheral->socket < 0 || size < sizeof(uint32_t) || size > sizeof value) return -1;
    for (size_t number = 0; number <= total; number++) {
        const uint32_t word = number == total ? UINT32_MAX : (uint32_t)number;
        memcpy(value, &word, sizeof word);
        if (write(peripheral->socket, value, size) < 0) return -1;
    }
    return 0;
}
