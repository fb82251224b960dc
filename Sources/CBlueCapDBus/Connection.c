#define _GNU_SOURCE
#include "Private.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static DBusConnection *real(cdbus_connection *connection) { return (DBusConnection *)connection; }

/// A copy that `cdbus_free` releases; libdbus has no public function for it.
static char *copied(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') length++;
    char *copy = dbus_malloc(length + 1);
    if (copy == NULL) return NULL;
    for (size_t index = 0; index <= length; index++) copy[index] = text[index];
    return copy;
}

cdbus_connection *cdbus_connection_open(const char *address, char **error_name, char **error_text) {
    DBusError error = DBUS_ERROR_INIT;
    DBusConnection *connection = dbus_connection_open_private(address, &error);
    if (connection == NULL) {
        *error_name = copied(error.name != NULL ? error.name : DBUS_ERROR_FAILED);
        *error_text = copied(error.message != NULL ? error.message : "");
        dbus_error_free(&error);
        return NULL;
    }
    // The default for bus connections is `_exit(1)`, which an application must not suffer.
    dbus_connection_set_exit_on_disconnect(connection, FALSE);
    return (cdbus_connection *)connection;
}

static dbus_bool_t watch_added(DBusWatch *watch, void *data) {
    const cdbus_handlers *handlers = data;
    handlers->added((cdbus_watch *)watch, handlers->data);
    return TRUE;
}

static void watch_removed(DBusWatch *watch, void *data) {
    const cdbus_handlers *handlers = data;
    handlers->removed((cdbus_watch *)watch, handlers->data);
}

static void watch_toggled(DBusWatch *watch, void *data) {
    const cdbus_handlers *handlers = data;
    handlers->toggled((cdbus_watch *)watch, handlers->data);
}

bool cdbus_connection_set_handlers(cdbus_connection *connection, const cdbus_handlers *handlers) {
    // libdbus releases the copy with the registration.
    cdbus_handlers *copy = dbus_malloc(sizeof *copy);
    if (copy == NULL) return false;
    *copy = *handlers;
    return dbus_connection_set_watch_functions(
        real(connection), watch_added, watch_removed, watch_toggled, copy, dbus_free);
}

void cdbus_connection_close(cdbus_connection *connection) {
    dbus_connection_set_watch_functions(real(connection), NULL, NULL, NULL, NULL, NULL);
    dbus_connection_close(real(connection));
    // libdbus's own "Disconnected" holds the connection's size counter.
    DBusMessage *unread;
    while ((unread = dbus_connection_pop_message(real(connection))) != NULL) dbus_message_unref(unread);
    dbus_connection_unref(real(connection));
}

bool cdbus_connection_send(cdbus_connection *connection, cdbus_message *message, uint32_t *serial) {
    dbus_uint32_t given = 0;
    bool queued = dbus_connection_send(real(connection), (DBusMessage *)message, &given);
    *serial = given;
    return queued;
}

bool cdbus_connection_is_authenticated(cdbus_connection *connection) {
    return dbus_connection_get_is_authenticated(real(connection));
}

bool cdbus_connection_has_output(cdbus_connection *connection) {
    return dbus_connection_has_messages_to_send(real(connection));
}

// libdbus's flags and ours are the same bits.
_Static_assert(CDBUS_READABLE == DBUS_WATCH_READABLE, "readable");
_Static_assert(CDBUS_WRITABLE == DBUS_WATCH_WRITABLE, "writable");
_Static_assert(CDBUS_ERROR == DBUS_WATCH_ERROR, "error");
_Static_assert(CDBUS_HANGUP == DBUS_WATCH_HANGUP, "hangup");

int cdbus_watch_descriptor(cdbus_watch *watch) { return dbus_watch_get_unix_fd((DBusWatch *)watch); }
unsigned int cdbus_watch_flags(cdbus_watch *watch) { return dbus_watch_get_flags((DBusWatch *)watch); }
bool cdbus_watch_enabled(cdbus_watch *watch) { return dbus_watch_get_enabled((DBusWatch *)watch); }
void cdbus_watch_handle(cdbus_watch *watch, unsigned int flags) { dbus_watch_handle((DBusWatch *)watch, flags); }

ssize_t cdbus_receive(int socket, void *bytes, size_t size, int *descriptors, size_t *count) {
    struct iovec part = {.iov_base = bytes, .iov_len = size};
    union {
        struct cmsghdr aligned;
        char bytes[CMSG_SPACE(CDBUS_MOST_DESCRIPTORS * sizeof(int))];
    } control;
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    *count = 0;
    ssize_t received;
    do {
        received = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (received < 0 && errno == EINTR);
    if (received < 0) return -errno;
    for (struct cmsghdr *item = CMSG_FIRSTHDR(&message); item != NULL; item = CMSG_NXTHDR(&message, item)) {
        if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
        const size_t length = item->cmsg_len - CMSG_LEN(0);
        memcpy(descriptors + *count, CMSG_DATA(item), length);
        *count += length / sizeof(int);
    }
    if (message.msg_flags & MSG_CTRUNC) {
        while (*count > 0) close(descriptors[--*count]);
        return -EMFILE;
    }
    return received;
}

char *cdbus_machine_id(void) { return dbus_try_get_local_machine_id(NULL); }
