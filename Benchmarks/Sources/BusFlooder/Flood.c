// memmem
#define _GNU_SOURCE

#include "Flood.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/// How many messages go to the kernel in one write.
#define BATCH 64

#define OUT_OF_PATIENCE_MILLISECONDS 60000

static void die(const char *reason) {
    fprintf(stderr, "BusFlooder: %s\n", reason);
    exit(1);
}

// Building

static DBusMessage *added(const struct device *device) {
    DBusMessage *message =
        dbus_message_new_signal("/", "org.freedesktop.DBus.ObjectManager", "InterfacesAdded");
    DBusMessageIter body;
    const char *path = device->path;
    dbus_message_iter_init_append(message, &body);
    dbus_message_iter_append_basic(&body, DBUS_TYPE_OBJECT_PATH, &path);
    append_device_interfaces(&body, device);
    return message;
}

static DBusMessage *heard_again(const struct device *device) {
    DBusMessage *message =
        dbus_message_new_signal(device->path, "org.freedesktop.DBus.Properties", "PropertiesChanged");
    DBusMessageIter body, invalidated;
    const char *interface = "org.bluez.Device1";
    dbus_message_iter_init_append(message, &body);
    dbus_message_iter_append_basic(&body, DBUS_TYPE_STRING, &interface);
    append_device_update(&body, device);
    dbus_message_iter_open_container(&body, DBUS_TYPE_ARRAY, "s", &invalidated);
    dbus_message_iter_close_container(&body, &invalidated);
    return message;
}

typedef DBusMessage *(*builder)(const struct device *);

static void append_message(struct flood *flood, size_t index, DBusMessage *message) {
    char *bytes = NULL;
    int length = 0;
    dbus_message_set_serial(message, (dbus_uint32_t)index + 1);
    if (!dbus_message_marshal(message, &bytes, &length)) die("out of memory");
    if (flood->bytes == NULL) {
        flood->message_length = (size_t)length;
        flood->bytes = malloc((size_t)length * (flood->devices + flood->sentinels));
        if (flood->bytes == NULL) die("out of memory");
    }
    if ((size_t)length != flood->message_length) die("signals of different lengths in one flood");
    memcpy(flood->bytes + index * flood->message_length, bytes, (size_t)length);
    dbus_free(bytes);
}

static void append(struct flood *flood, size_t index, builder build, const struct device *device) {
    DBusMessage *message = build(device);
    append_message(flood, index, message);
    dbus_message_unref(message);
}

static struct flood make(
    const struct device *devices, size_t count, size_t total, const struct device *sentinel, builder build) {
    struct flood flood = {.devices = count, .sentinels = 1, .total = total};
    for (size_t i = 0; i < count; i++) append(&flood, i, build, &devices[i]);
    append(&flood, count, build, sentinel);
    return flood;
}

struct flood flood_discovery(const struct device *devices, size_t count, const struct device *sentinel) {
    return make(devices, count, count, sentinel, added);
}

static size_t offset_of(const struct flood *flood, const void *pattern, size_t length) {
    const uint8_t *found = memmem(flood->bytes, flood->message_length, pattern, length);
    if (found == NULL) die("a signal lacks what is to change in it");
    return (size_t)(found - flood->bytes);
}

struct flood flood_updates(const struct device *devices, size_t count, size_t total, const struct device *sentinel) {
    struct flood flood = make(devices, count, total, sentinel, heard_again);
    flood.manufacturer_offset = offset_of(&flood, devices[0].manufacturer, MANUFACTURER_LENGTH);
    // The value follows the variant's signature "n": length 1, 'n', zero, aligned to two.
    flood.rssi_offset = offset_of(&flood, "\x01n", 3) + 3;
    flood.rssi_offset += flood.rssi_offset % 2;
    return flood;
}

struct flood flood_of(DBusMessage **messages, size_t count, const void *mark, size_t mark_length, size_t total) {
    // As many of each that a write has a whole batch.
    struct flood flood = {.devices = BATCH * count, .sentinels = count, .total = total};
    const size_t signals = flood.devices + flood.sentinels;
    for (size_t i = 0; i < signals; i++) append_message(&flood, i, messages[i % count]);
    flood.number_offset = offset_of(&flood, mark, mark_length);
    for (size_t i = flood.devices; i < signals; i++) {
        memset(flood.bytes + i * flood.message_length + flood.number_offset, 0xFF, mark_length);
    }
    return flood;
}

/// Another strength and another payload, so that no listener may say "nothing changed"; or the number of a notification.
static void touch(struct flood *flood, size_t index, uint32_t number) {
    uint8_t *message = flood->bytes + index * flood->message_length;
    if (flood->number_offset != 0) {
        memcpy(message + flood->number_offset, &number, sizeof number);
        return;
    }
    if (flood->rssi_offset == 0) return;
    const int16_t rssi = (int16_t)(-30 - (int)(number / flood->devices % 60));
    memcpy(message + flood->rssi_offset, &rssi, sizeof rssi);
    memcpy(message + flood->manufacturer_offset + 2, &number, sizeof number);
}

// Sending

void write_all(int descriptor, const uint8_t *bytes, size_t length) {
    while (length > 0) {
        const ssize_t written = write(descriptor, bytes, length);
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            struct pollfd wait = {.fd = descriptor, .events = POLLOUT};
            if (poll(&wait, 1, OUT_OF_PATIENCE_MILLISECONDS) == 0) die("the bus takes no more messages");
        } else if (written < 0 && errno != EINTR) {
            die("the bus is gone");
        }
    }
}

void flood_send(struct flood *flood, DBusConnection *connection, size_t rate) {
    int descriptor = -1;
    // Nothing of libdbus's own may stand half written: from here to the end its socket is ours.
    dbus_connection_flush(connection);
    if (!dbus_connection_get_unix_fd(connection, &descriptor)) die("the bus has no socket");
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    for (size_t sent = 0; sent < flood->total;) {
        const size_t first = sent % flood->devices;
        size_t count = flood->devices - first;
        if (count > BATCH) count = BATCH;
        if (count > flood->total - sent) count = flood->total - sent;
        if (rate > 0) {
            count = 1;
            next.tv_nsec += (long)(1000000000 / rate);
            if (next.tv_nsec >= 1000000000) {
                next.tv_sec++;
                next.tv_nsec -= 1000000000;
            }
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        }
        for (size_t i = 0; i < count; i++) touch(flood, first + i, (uint32_t)(sent + i));
        write_all(descriptor, flood->bytes + first * flood->message_length, count * flood->message_length);
        sent += count;
    }
    if (flood->rssi_offset != 0) touch(flood, flood->devices, (uint32_t)flood->total);
    write_all(
        descriptor, flood->bytes + flood->devices * flood->message_length, flood->sentinels * flood->message_length);
}

void flood_free(struct flood *flood) {
    free(flood->bytes);
    *flood = (struct flood){0};
}
