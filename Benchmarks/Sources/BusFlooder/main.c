// A pretend bluetoothd that floods its bus, driven line by line through standard input:
//
//     discover N     prepares InterfacesAdded for N devices and a sentinel; answers "prepared"
//     update U D     prepares U updates round robin over the first D devices, and the sentinel's; answers "prepared"
//     go             sends what was prepared; answers "sent N"
//     peripheral S C announces a device with S services of C characteristics each that can be connected; answers "ready"
//     notify N SIZE  prepares N notifications of the first characteristic, and the sentinel; answers "prepared"
//     packets N SIZE the same through the socket that was acquired; answers "prepared"
//
// It owns org.bluez on the bus given as its argument, says "ready" then, and ends with its standard input.

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "Calls.h"
#include "Flood.h"

static struct room room;
static struct device sentinel;
static struct flood prepared;
/// What goes through the acquired socket instead, if anything.
static size_t packets, packet_size;

static void die(const char *reason) {
    fprintf(stderr, "BusFlooder: %s\n", reason);
    exit(1);
}

static void say(const char *text) {
    puts(text);
    fflush(stdout);
}

static DBusConnection *own_bluez(const char *address) {
    DBusError error = DBUS_ERROR_INIT;
    DBusConnection *connection = dbus_connection_open_private(address, &error);
    if (connection == NULL || !dbus_bus_register(connection, &error)) die(error.message);
    dbus_connection_set_exit_on_disconnect(connection, TRUE);
    if (!dbus_connection_add_filter(connection, answer_call, &room, NULL)) die("out of memory");
    if (dbus_bus_request_name(connection, "org.bluez", DBUS_NAME_FLAG_DO_NOT_QUEUE, &error)
        != DBUS_REQUEST_NAME_REPLY_PRIMARY_OWNER) {
        die(error.message ? error.message : "somebody else owns org.bluez on this bus");
    }
    return connection;
}

static void prepare_discovery(size_t count) {
    if (count == 0) die("discover: at least one device");
    room.devices = realloc(room.devices, count * sizeof *room.devices);
    if (room.devices == NULL) die("out of memory");
    for (size_t i = 0; i < count; i++) device_make(&room.devices[i], (uint32_t)i + 1);
    device_make_sentinel(&sentinel);
    flood_free(&prepared);
    prepared = flood_discovery(room.devices, count, &sentinel);
    room.announced = count;
}

static void prepare_updates(size_t total, size_t count) {
    if (count == 0 || count > room.announced) die("update: more devices than were discovered");
    flood_free(&prepared);
    prepared = flood_updates(room.devices, count, total, &sentinel);
}

static void prepare_peripheral(DBusConnection *connection, size_t services, size_t characteristics) {
    room.devices = realloc(room.devices, sizeof *room.devices);
    if (room.devices == NULL) die("out of memory");
    device_make(&room.devices[0], 1);
    room.devices[0].is_paired = TRUE;
    device_make_sentinel(&sentinel);
    room.announced = 1;
    peripheral_make(&room.peripheral, room.devices, services, characteristics);
    struct flood announcement = flood_discovery(room.devices, 1, &sentinel);
    flood_send(&announcement, connection);
    flood_free(&announcement);
}

static void prepare_notifications(size_t total, size_t size) {
    flood_free(&prepared);
    packets = 0;
    prepared = flood_notifications(&room.peripheral, size, total);
    if (prepared.bytes == NULL) die("notify: a size of 4 to 512");
}

static void go(DBusConnection *connection) {
    if (packets > 0) {
        if (peripheral_send_packets(&room.peripheral, packet_size, packets) < 0) die("nobody has acquired a socket");
        printf("sent %zu\n", packets);
    } else {
        flood_send(&prepared, connection);
        printf("sent %zu\n", prepared.total);
    }
    fflush(stdout);
}

static void obey(const char *command, DBusConnection *connection) {
    size_t first = 0, second = 0;
    if (sscanf(command, "discover %zu", &first) == 1) {
        prepare_discovery(first);
        say("prepared");
    } else if (sscanf(command, "update %zu %zu", &first, &second) == 2) {
        prepare_updates(first, second);
        say("prepared");
    } else if (sscanf(command, "peripheral %zu %zu", &first, &second) == 2) {
        prepare_peripheral(connection, first, second);
        say("ready");
    } else if (sscanf(command, "notify %zu %zu", &first, &second) == 2) {
        prepare_notifications(first, second);
        say("prepared");
    } else if (sscanf(command, "packets %zu %zu", &packets, &packet_size) == 2) {
        say("prepared");
    } else if (strncmp(command, "go", 2) == 0 && (packets > 0 || prepared.bytes != NULL)) {
        go(connection);
    } else {
        die("not a command, or nothing prepared");
    }
}

int main(int count, char **arguments) {
    if (count != 2) die("usage: BusFlooder BUS-ADDRESS");
    DBusConnection *connection = own_bluez(arguments[1]);
    struct pollfd sources[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
    if (!dbus_connection_get_unix_fd(connection, &sources[1].fd)) die("the bus has no socket");
    say("ready");
    for (;;) {
        // Calls that came in while a flood went out lie in libdbus already; the socket would not tell.
        while (dbus_connection_dispatch(connection) == DBUS_DISPATCH_DATA_REMAINS) continue;
        dbus_connection_flush(connection);
        poll(sources, 2, -1);
        if (sources[1].revents) dbus_connection_read_write(connection, 0);
        if (sources[0].revents) {
            char command[64];
            // One command at a time is under way: the driver waits for each answer.
            if (fgets(command, sizeof command, stdin) == NULL) return 0;
            obey(command, connection);
        }
    }
}
