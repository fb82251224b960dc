// A pretend bluetoothd that floods its bus, driven line by line through standard input:
//
//     discover N F   prepares InterfacesAdded for N devices and a sentinel, after the first F; answers "prepared"
//     update U D     prepares U updates round robin over the first D devices, and the sentinel's; answers "prepared"
//     go R           sends what was prepared, R signals a second; answers "sent N"
//     peripheral S C D announces D devices with S services of C characteristics each that can be connected; answers
//                    "ready"
//     notify N SIZE  prepares N notifications of the first characteristics, round robin over those devices, and a
//                    sentinel of each; answers "prepared"
//     packets N SIZE the same through the socket that was acquired; answers "prepared"
//
// F is 0 and D is 1 where they are not given. Without R, or with 0, the bus takes as many as it can.
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

/// Makes devices after the first ones.
static void make_devices(size_t count, size_t first) {
    if (count == 0 || first > room.announced) die("at least one device, after those that there are");
    room.announced = first + count;
    room.devices = realloc(room.devices, room.announced * sizeof *room.devices);
    if (room.devices == NULL) die("out of memory");
    for (size_t i = first; i < room.announced; i++) device_make(&room.devices[i], (uint32_t)i + 1);
    device_make_sentinel(&sentinel);
    // Another strength each time: a device that is added again without a change is no event.
    static int16_t strength = -40;
    sentinel.rssi = strength--;
}

static void prepare_discovery(size_t count, size_t first) {
    make_devices(count, first);
    flood_free(&prepared);
    prepared = flood_discovery(room.devices + first, count, &sentinel);
}

static void prepare_updates(size_t total, size_t count) {
    if (count == 0 || count > room.announced) die("update: more devices than were discovered");
    flood_free(&prepared);
    prepared = flood_updates(room.devices, count, total, &sentinel);
}

static void prepare_peripherals(DBusConnection *connection, size_t services, size_t characteristics, size_t count) {
    make_devices(count, 0);
    room.peripherals = realloc(room.peripherals, count * sizeof *room.peripherals);
    if (room.peripherals == NULL) die("out of memory");
    room.connectable = count;
    for (size_t i = 0; i < count; i++) {
        room.devices[i].is_paired = TRUE;
        peripheral_make(&room.peripherals[i], &room.devices[i], services, characteristics);
    }
    struct flood announcement = flood_discovery(room.devices, count, &sentinel);
    flood_send(&announcement, connection, 0);
    flood_free(&announcement);
}

static void prepare_notifications(size_t total, size_t size) {
    flood_free(&prepared);
    packets = 0;
    prepared = flood_notifications(room.peripherals, room.connectable, size, total);
    if (prepared.bytes == NULL) die("notify: a size of 4 to 512, and a peripheral");
}

static void go(DBusConnection *connection, size_t rate) {
    if (packets > 0) {
        if (room.connectable == 0 || peripheral_send_packets(room.peripherals, packet_size, packets) < 0) {
            die("nobody has acquired a socket");
        }
        printf("sent %zu\n", packets);
    } else {
        flood_send(&prepared, connection, rate);
        printf("sent %zu\n", prepared.total);
    }
    fflush(stdout);
}

static void obey(const char *command, DBusConnection *connection) {
    size_t first = 0, second = 0, third = 1;
    if (sscanf(command, "discover %zu %zu", &first, &second) >= 1) {
        prepare_discovery(first, second);
        say("prepared");
    } else if (sscanf(command, "update %zu %zu", &first, &second) == 2) {
        prepare_updates(first, second);
        say("prepared");
    } else if (sscanf(command, "peripheral %zu %zu %zu", &first, &second, &third) >= 2) {
        prepare_peripherals(connection, first, second, third);
        say("ready");
    } else if (sscanf(command, "notify %zu %zu", &first, &second) == 2) {
        prepare_notifications(first, second);
        say("prepared");
    } else if (sscanf(command, "packets %zu %zu", &packets, &packet_size) == 2) {
        say("prepared");
    } else if (strncmp(command, "go", 2) == 0 && (packets > 0 || prepared.bytes != NULL)) {
        go(connection, sscanf(command, "go %zu", &first) == 1 ? first : 0);
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
