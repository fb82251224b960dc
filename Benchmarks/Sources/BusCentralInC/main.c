// The floor: a central on libdbus alone, that decodes only what a central needs and keeps it by path.
//
//     BusCentralInC BUS-ADDRESS notify|acquire|read|write|resolve [threaded]
//
// It connects the one device, waits for its services and says "ready" (`resolve` says so at once). Then
//
//     notify, acquire   says "received N" at the sentinel, the values before it counted: by signals, or by the socket
//     read, write       at "go N W" reads or writes N times, W characteristics at once: "took N SECONDS MEDIAN P99"
//                       (microseconds)
//     resolve           at "go N" connects, waits for all services and disconnects N times: the same

#include <dbus/dbus.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "Attributes.h"

#define DEVICE "/org/bluez/hci0/dev_C0_98_E5_00_00_01"
#define ATTRIBUTES 110

static DBusConnection *bus;
static size_t received;
static int is_resolved;

/// Reads or writes of one characteristic, one after the other.
struct lane {
    const char *path;
    double start;
};

static double *latencies;
static size_t to_send, answered, total;
static int is_writing;

static void die(const char *reason) {
    fprintf(stderr, "BusCentralInC: %s\n", reason);
    exit(1);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void note_value(const uint8_t *value, size_t length) {
    uint32_t number = 0;
    if (length >= sizeof number) memcpy(&number, value, sizeof number);
    if (number != UINT32_MAX) {
        received++;
        return;
    }
    printf("received %zu\n", received);
    fflush(stdout);
    received = 0;
}

// Signals

static void read_value(DBusMessageIter *variant, struct attribute *attribute) {
    DBusMessageIter array;
    const uint8_t *bytes = NULL;
    int length = 0;
    if (dbus_message_iter_get_arg_type(variant) != DBUS_TYPE_ARRAY) return;
    dbus_message_iter_recurse(variant, &array);
    dbus_message_iter_get_fixed_array(&array, &bytes, &length);
    if (length < 0 || (size_t)length > sizeof attribute->value) return;
    memcpy(attribute->value, bytes, (size_t)length);
    attribute->length = (uint16_t)length;
}

/// Reads an a{sv} of an attribute: Value always, UUID of a new one.
static int read_attribute(DBusMessageIter *at, struct attribute *attribute, int is_new) {
    DBusMessageIter properties, entry, variant;
    int has_value = 0;
    dbus_message_iter_recurse(at, &properties);
    for (; dbus_message_iter_get_arg_type(&properties) == DBUS_TYPE_DICT_ENTRY; dbus_message_iter_next(&properties)) {
        const char *name;
        dbus_message_iter_recurse(&properties, &entry);
        dbus_message_iter_get_basic(&entry, &name);
        dbus_message_iter_next(&entry);
        if (strcmp(name, "Value") == 0) {
            dbus_message_iter_recurse(&entry, &variant);
            read_value(&variant, attribute);
            has_value = 1;
        } else if (is_new && strcmp(name, "UUID") == 0) {
            const char *uuid;
            dbus_message_iter_recurse(&entry, &variant);
            if (dbus_message_iter_get_arg_type(&variant) != DBUS_TYPE_STRING) continue;
            dbus_message_iter_get_basic(&variant, &uuid);
            strncpy(attribute->uuid, uuid, sizeof attribute->uuid - 1);
        }
    }
    return has_value;
}

static void read_device(DBusMessageIter *at) {
    DBusMessageIter properties, entry, variant;
    dbus_message_iter_recurse(at, &properties);
    for (; dbus_message_iter_get_arg_type(&properties) == DBUS_TYPE_DICT_ENTRY; dbus_message_iter_next(&properties)) {
        const char *name;
        dbus_bool_t yes;
        dbus_message_iter_recurse(&properties, &entry);
        dbus_message_iter_get_basic(&entry, &name);
        if (strcmp(name, "ServicesResolved") != 0) continue;
        dbus_message_iter_next(&entry);
        dbus_message_iter_recurse(&entry, &variant);
        dbus_message_iter_get_basic(&variant, &yes);
        is_resolved = (int)yes;
    }
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
        if (strncmp(interface, "org.bluez.Gatt", 14) != 0) continue;
        dbus_message_iter_next(&entry);
        struct attribute *attribute = attribute_add(path);
        attribute->is_characteristic = strcmp(interface, "org.bluez.GattCharacteristic1") == 0;
        read_attribute(&entry, attribute, 1);
    }
}

static void properties_changed(DBusMessage *message) {
    DBusMessageIter body;
    const char *interface;
    if (!dbus_message_has_signature(message, "sa{sv}as")) return;
    dbus_message_iter_init(message, &body);
    dbus_message_iter_get_basic(&body, &interface);
    dbus_message_iter_next(&body);
    if (strcmp(interface, "org.bluez.GattCharacteristic1") == 0) {
        struct attribute *attribute = attribute_find(dbus_message_get_path(message));
        if (attribute != NULL && read_attribute(&body, attribute, 0)) note_value(attribute->value, attribute->length);
    } else if (strcmp(interface, "org.bluez.Device1") == 0) {
        read_device(&body);
    }
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

// Calls

static DBusMessage *new_call(const char *path, const char *interface, const char *member) {
    DBusMessage *message = dbus_message_new_method_call("org.bluez", path, interface, member);
    if (message == NULL) die("out of memory");
    return message;
}

static DBusMessage *attribute_call(const char *path, const char *member) {
    DBusMessage *message = new_call(path, "org.bluez.GattCharacteristic1", member);
    DBusMessageIter body, options;
    if (strcmp(member, "StartNotify") == 0) return message;
    dbus_message_iter_init_append(message, &body);
    const int writes = strcmp(member, "WriteValue") == 0;
    if (writes) {
        static const uint8_t value[20];
        const uint8_t *start = value;
        DBusMessageIter bytes;
        dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "y", &bytes);
        dbus_message_iter_append_fixed_array(&bytes, DBUS_TYPE_BYTE, &start, sizeof value);
        dbus_message_iter_close_container(&body, &bytes);
    }
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "{sv}", &options);
    if (writes) {
        const char *name = "type", *type = "request";
        DBusMessageIter entry, variant;
        dbus_message_iter_open_container(&options, DBUS_TYPE_DICT_ENTRY, NULL, &entry);
        dbus_message_iter_append_basic(&entry, DBUS_TYPE_STRING, &name);
        dbus_message_iter_open_container(&entry, DBUS_TYPE_VARIANT, "s", &variant);
        dbus_message_iter_append_basic(&variant, DBUS_TYPE_STRING, &type);
        dbus_message_iter_close_container(&entry, &variant);
        dbus_message_iter_close_container(&options, &entry);
    }
    dbus_message_iter_close_container(&body, &options);
    return message;
}

static DBusMessage *call(DBusMessage *message) {
    DBusError error = DBUS_ERROR_INIT;
    DBusMessage *reply = dbus_connection_send_with_reply_and_block(bus, message, 10000, &error);
    if (reply == NULL) die(error.message);
    dbus_message_unref(message);
    return reply;
}

static void turn(void) {
    if (!dbus_connection_read_write_dispatch(bus, -1)) die("the bus is gone");
}

static void connect_device(void) {
    dbus_message_unref(call(new_call(DEVICE, "org.bluez.Device1", "Connect")));
    while (!is_resolved || attribute_count() < ATTRIBUTES) turn();
}

// Measuring

static int compare(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void report(double seconds) {
    qsort(latencies, total, sizeof *latencies, compare);
    printf(
        "took %zu %.9f %.3f %.3f\n", total, seconds, latencies[total / 2] * 1e6, latencies[total * 99 / 100] * 1e6);
    fflush(stdout);
    free(latencies);
}

static void send_next(struct lane *lane);

static void call_answered(DBusPendingCall *pending, void *data) {
    struct lane *const lane = data;
    DBusMessage *reply = dbus_pending_call_steal_reply(pending);
    const uint8_t *bytes = NULL;
    int length = 0;
    latencies[answered++] = now() - lane->start;
    if (is_writing ? dbus_message_get_type(reply) != DBUS_MESSAGE_TYPE_METHOD_RETURN
                   : !dbus_message_get_args(
                         reply, NULL, DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE, &bytes, &length, DBUS_TYPE_INVALID)) {
        die("a call was refused");
    }
    dbus_message_unref(reply);
    dbus_pending_call_unref(pending);
    send_next(lane);
}

static void send_next(struct lane *lane) {
    if (to_send == 0) return;
    to_send--;
    DBusMessage *message = attribute_call(lane->path, is_writing ? "WriteValue" : "ReadValue");
    DBusPendingCall *pending = NULL;
    lane->start = now();
    if (!dbus_connection_send_with_reply(bus, message, &pending, 10000) || pending == NULL) die("out of memory");
    dbus_pending_call_set_notify(pending, call_answered, lane, NULL);
    dbus_message_unref(message);
}

static void measure_calls(size_t width) {
    static struct lane lanes[ATTRIBUTES];
    if (width > characteristic_count()) die("more calls under way than characteristics");
    to_send = total;
    answered = 0;
    const double start = now();
    for (size_t i = 0; i < width; i++) {
        lanes[i].path = attribute_characteristic(i)->path;
        send_next(&lanes[i]);
    }
    while (answered < total) turn();
    report(now() - start);
}

static void measure_connections(void) {
    const double start = now();
    for (size_t i = 0; i < total; i++) {
        attributes_remove_all();
        is_resolved = 0;
        const double begin = now();
        connect_device();
        latencies[i] = now() - begin;
        dbus_message_unref(call(new_call(DEVICE, "org.bluez.Device1", "Disconnect")));
        while (is_resolved) turn();
    }
    report(now() - start);
}

static void obey(int is_calling) {
    char line[64];
    while (fgets(line, sizeof line, stdin) != NULL) {
        size_t width = 1;
        if (sscanf(line, "go %zu %zu", &total, &width) < 1) die("not a command");
        latencies = calloc(total, sizeof *latencies);
        if (latencies == NULL) die("out of memory");
        if (is_calling) measure_calls(width); else measure_connections();
    }
}

static void listen_to_socket(void) {
    DBusMessage *reply = call(attribute_call(attribute_characteristic(0)->path, "AcquireNotify"));
    int descriptor = -1;
    uint16_t mtu = 0;
    if (!dbus_message_get_args(
            reply, NULL, DBUS_TYPE_UNIX_FD, &descriptor, DBUS_TYPE_UINT16, &mtu, DBUS_TYPE_INVALID)) {
        die("AcquireNotify was refused");
    }
    puts("ready");
    fflush(stdout);
    static uint8_t value[512];
    for (ssize_t length; (length = read(descriptor, value, sizeof value)) > 0;) note_value(value, (size_t)length);
}

static void *sleep_for_ever(void *nothing) {
    (void)nothing;
    for (;;) pause();
}

int main(int count, char **arguments) {
    if (count < 3) die("usage: BusCentralInC BUS-ADDRESS notify|acquire|read|write|resolve [threaded]");
    const char *mode = arguments[2];
    pthread_t thread;
    // See BusScannerInC: what glibc's locks cost in a process with more than one thread.
    if (count > 3 && pthread_create(&thread, NULL, sleep_for_ever, NULL) != 0) die("no thread");
    DBusError error = DBUS_ERROR_INIT;
    bus = dbus_connection_open_private(arguments[1], &error);
    if (bus == NULL || !dbus_bus_register(bus, &error)) die(error.message);
    if (!dbus_connection_add_filter(bus, filter, NULL, NULL)) die("out of memory");
    dbus_bus_add_match(
        bus, "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.Properties',member='PropertiesChanged'",
        &error);
    dbus_bus_add_match(
        bus, "type='signal',sender='org.bluez',interface='org.freedesktop.DBus.ObjectManager'", &error);
    if (dbus_error_is_set(&error)) die(error.message);
    dbus_message_unref(call(new_call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")));
    if (strcmp(mode, "resolve") != 0) connect_device();
    if (strcmp(mode, "acquire") == 0) {
        listen_to_socket();
        return 0;
    }
    if (strcmp(mode, "notify") == 0) {
        dbus_message_unref(call(attribute_call(attribute_characteristic(0)->path, "StartNotify")));
    }
    puts("ready");
    fflush(stdout);
    is_writing = strcmp(mode, "write") == 0;
    if (strcmp(mode, "notify") != 0) obey(is_writing || strcmp(mode, "read") == 0);
    while (strcmp(mode, "notify") == 0) turn();
    return 0;
}
