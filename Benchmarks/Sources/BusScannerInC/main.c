// The floor: a scanner on libdbus alone, that decodes only what a scanner needs and keeps it by path.
//
// It scans on the bus given as its argument and says "ready"; at every event of the sentinel it says how many events
// came before it since the last one, and how many devices are known: "received N devices D".

#include <dbus/dbus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Devices.h"

static const char sentinel[] = "/org/bluez/hci0/dev_FF_FF_FF_FF_FF_FF";
static size_t received;

static void die(const char *reason) {
    fprintf(stderr, "BusScannerInC: %s\n", reason);
    exit(1);
}

static void read_manufacturer_data(DBusMessageIter *variant, struct device *device) {
    DBusMessageIter dictionary, entry, value, array;
    if (dbus_message_iter_get_arg_type(variant) != DBUS_TYPE_ARRAY) return;
    dbus_message_iter_recurse(variant, &dictionary);
    if (dbus_message_iter_get_arg_type(&dictionary) != DBUS_TYPE_DICT_ENTRY) return;
    dbus_message_iter_recurse(&dictionary, &entry);
    if (dbus_message_iter_get_arg_type(&entry) != DBUS_TYPE_UINT16) return;
    dbus_message_iter_get_basic(&entry, &device->company);
    dbus_message_iter_next(&entry);
    dbus_message_iter_recurse(&entry, &value);
    if (dbus_message_iter_get_arg_type(&value) != DBUS_TYPE_ARRAY) return;
    dbus_message_iter_recurse(&value, &array);
    const uint8_t *bytes = NULL;
    int length = 0;
    dbus_message_iter_get_fixed_array(&array, &bytes, &length);
    if (length < 0 || (size_t)length > sizeof device->manufacturer) return;
    memcpy(device->manufacturer, bytes, (size_t)length);
    device->length = (uint8_t)length;
}

static char *read_string(DBusMessageIter *variant) {
    const char *text = NULL;
    if (dbus_message_iter_get_arg_type(variant) != DBUS_TYPE_STRING) return NULL;
    dbus_message_iter_get_basic(variant, &text);
    return strdup(text);
}

/// Reads an a{sv}: RSSI and ManufacturerData always, Address and Name of a new device.
static void read_properties(DBusMessageIter *at, struct device *device, int is_new) {
    DBusMessageIter properties, entry, variant;
    dbus_message_iter_recurse(at, &properties);
    for (; dbus_message_iter_get_arg_type(&properties) == DBUS_TYPE_DICT_ENTRY; dbus_message_iter_next(&properties)) {
        const char *name;
        dbus_message_iter_recurse(&properties, &entry);
        dbus_message_iter_get_basic(&entry, &name);
        dbus_message_iter_next(&entry);
        if (strcmp(name, "RSSI") == 0) {
            dbus_message_iter_recurse(&entry, &variant);
            if (dbus_message_iter_get_arg_type(&variant) == DBUS_TYPE_INT16) {
                dbus_message_iter_get_basic(&variant, &device->rssi);
            }
        } else if (strcmp(name, "ManufacturerData") == 0) {
            dbus_message_iter_recurse(&entry, &variant);
            read_manufacturer_data(&variant, device);
        } else if (is_new && device->address == NULL && strcmp(name, "Address") == 0) {
            dbus_message_iter_recurse(&entry, &variant);
            device->address = read_string(&variant);
        } else if (is_new && device->name == NULL && strcmp(name, "Name") == 0) {
            dbus_message_iter_recurse(&entry, &variant);
            device->name = read_string(&variant);
        }
    }
}

static void tell(const char *path) {
    if (strcmp(path, sentinel) != 0) {
        received++;
        return;
    }
    printf("received %zu devices %zu\n", received, device_count());
    fflush(stdout);
    received = 0;
}

static void interfaces_added(DBusMessage *message) {
    DBusMessageIter body, interfaces, entry;
    const char *path, *interface;
    if (!dbus_message_has_signature(message, "oa{sa{sv}}")) return;
    dbus_message_iter_init(message, &body);
    dbus_message_iter_get_basic(&body, &path);
    dbus_message_iter_next(&body);
    dbus_message_iter_recurse(&body, &interfaces);
    for (; dbus_message_iter_get_arg_type(&interfaces) == DBUS_TYPE_DICT_ENTRY; dbus_message_iter_next(&interfaces)) {
        dbus_message_iter_recurse(&interfaces, &entry);
        dbus_message_iter_get_basic(&entry, &interface);
        if (strcmp(interface, "org.bluez.Device1") != 0) continue;
        dbus_message_iter_next(&entry);
        read_properties(&entry, device_add(path), 1);
        tell(path);
    }
}

static void properties_changed(DBusMessage *message) {
    DBusMessageIter body;
    const char *interface;
    if (!dbus_message_has_signature(message, "sa{sv}as")) return;
    dbus_message_iter_init(message, &body);
    dbus_message_iter_get_basic(&body, &interface);
    if (strcmp(interface, "org.bluez.Device1") != 0) return;
    struct device *device = device_find(dbus_message_get_path(message));
    if (device == NULL) return;
    dbus_message_iter_next(&body);
    read_properties(&body, device, 0);
    tell(device->path);
}

static DBusHandlerResult filter(DBusConnection *connection, DBusMessage *message, void *data) {
    (void)connection, (void)data;
    if (dbus_message_is_signal(message, "org.freedesktop.DBus.Properties", "PropertiesChanged")) {
        properties_changed(message);
    } else if (dbus_message_is_signal(message, "org.freedesktop.DBus.ObjectManager", "InterfacesAdded")) {
        interfaces_added(message);
    } else {
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    }
    return DBUS_HANDLER_RESULT_HANDLED;
}

static void call(DBusConnection *connection, const char *path, const char *interface, const char *member) {
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *message = dbus_message_new_method_call("org.bluez", path, interface, member);
    DBusMessage *reply = dbus_connection_send_with_reply_and_block(connection, message, 10000, &error);
    if (reply == NULL) die(error.message);
    dbus_message_unref(message);
    dbus_message_unref(reply);
}

static void *sleep_for_ever(void *nothing) {
    (void)nothing;
    for (;;) pause();
}

int main(int count, char **arguments) {
    const int is_threaded = count == 3 && strcmp(arguments[2], "threaded") == 0;
    if (count != 2 && !is_threaded) die("usage: BusScannerInC BUS-ADDRESS [threaded]");
    // In a process of one thread glibc's locks are plain variables, and libdbus takes some eighty of them a message. A
    // second thread, that does nothing, shows what they cost in any other process.
    pthread_t thread;
    if (is_threaded && pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0) die("no thread");
    DBusError error = DBUS_ERROR_INIT;
    DBusConnection *connection = dbus_connection_open_private(arguments[1], &error);
    if (connection == NULL || !dbus_bus_register(connection, &error)) die(error.message);
    if (!dbus_connection_add_filter(connection, filter, NULL, NULL)) die("out of memory");
    dbus_bus_add_match(
        connection,
        "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged',"
        "path_namespace='/org/bluez'", &error);
    dbus_bus_add_match(
        connection,
        "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.ObjectManager',member='InterfacesAdded'",
        &error);
    if (dbus_error_is_set(&error)) die(error.message);
    call(connection, "/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects");
    call(connection, "/org/bluez/hci0", "org.bluez.Adapter1", "StartDiscovery");
    puts("ready");
    fflush(stdout);
    while (dbus_connection_read_write_dispatch(connection, -1)) continue;
    return 0;
}
