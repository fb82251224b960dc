#include "Private.h"

// cdbus_iter is libdbus's own iterator under another type.
_Static_assert(sizeof(cdbus_iter) >= sizeof(DBusMessageIter), "cdbus_iter has no room for a DBusMessageIter");
_Static_assert(_Alignof(cdbus_iter) >= _Alignof(DBusMessageIter), "cdbus_iter is not aligned for a DBusMessageIter");

static DBusMessage *real(cdbus_message *message) { return (DBusMessage *)message; }
static cdbus_message *ours(DBusMessage *message) { return (cdbus_message *)message; }

void cdbus_free(char *string) { dbus_free(string); }

bool cdbus_is_address(const char *text) {
    DBusAddressEntry **entries;
    int count;
    if (!dbus_parse_address(text, &entries, &count, NULL)) return false;
    dbus_address_entries_free(entries);
    return true;
}

// MARK: Messages

cdbus_message *cdbus_message_new_call(
    const char *destination, const char *path, const char *interface, const char *member) {
    DBusMessage *message = dbus_message_new_method_call(destination, path, interface, member);
    // The bus must not start a daemon that does not run.
    if (message) { dbus_message_set_auto_start(message, false); }
    return ours(message);
}

cdbus_message *cdbus_message_new_signal(const char *path, const char *interface, const char *member) {
    return ours(dbus_message_new_signal(path, interface, member));
}

cdbus_message *cdbus_message_new(int type) { return ours(dbus_message_new(type)); }
cdbus_message *cdbus_message_copy(cdbus_message *message) { return ours(dbus_message_copy(real(message))); }
bool cdbus_message_set_path(cdbus_message *message, const char *path) {
    return dbus_message_set_path(real(message), path);
}
void cdbus_message_unref(cdbus_message *message) { dbus_message_unref(real(message)); }

int cdbus_message_type(cdbus_message *message) { return dbus_message_get_type(real(message)); }
uint32_t cdbus_message_serial(cdbus_message *message) { return dbus_message_get_serial(real(message)); }
void cdbus_message_set_serial(cdbus_message *message, uint32_t serial) {
    dbus_message_set_serial(real(message), serial);
}
void cdbus_message_set_reply_serial(cdbus_message *message, uint32_t serial) {
    dbus_message_set_reply_serial(real(message), serial);
}
void cdbus_message_set_no_reply(cdbus_message *message, bool no_reply) {
    dbus_message_set_no_reply(real(message), no_reply);
}
void cdbus_message_set_error_name(cdbus_message *message, const char *name) {
    dbus_message_set_error_name(real(message), name);
}
void cdbus_message_set_sender(cdbus_message *message, const char *sender) {
    dbus_message_set_sender(real(message), sender);
}
void cdbus_message_set_destination(cdbus_message *message, const char *destination) {
    dbus_message_set_destination(real(message), destination);
}

const char *cdbus_message_signature(cdbus_message *message) { return dbus_message_get_signature(real(message)); }

bool cdbus_message_marshal(cdbus_message *message, char **bytes, int *count) {
    return dbus_message_marshal(real(message), bytes, count);
}

// MARK: Writing

static DBusMessageIter *at(const cdbus_iter *iter) { return (DBusMessageIter *)(uintptr_t)iter; }

void cdbus_iter_init_append(cdbus_message *message, cdbus_iter *iter) {
    dbus_message_iter_init_append(real(message), at(iter));
}

bool cdbus_iter_append(cdbus_iter *iter, int type, const void *value) {
    return dbus_message_iter_append_basic(at(iter), type, value);
}

bool cdbus_iter_append_string(cdbus_iter *iter, int type, const char *value) {
    return dbus_message_iter_append_basic(at(iter), type, &value);
}

bool cdbus_iter_append_bytes(cdbus_iter *iter, const uint8_t *bytes, size_t count) {
    DBusMessageIter inside;
    if (!dbus_message_iter_open_container(at(iter), DBUS_TYPE_ARRAY, DBUS_TYPE_BYTE_AS_STRING, &inside)) return false;
    if (count > 0 && !dbus_message_iter_append_fixed_array(&inside, DBUS_TYPE_BYTE, &bytes, (int)count)) {
        dbus_message_iter_abandon_container(at(iter), &inside);
        return false;
    }
    return dbus_message_iter_close_container(at(iter), &inside);
}

bool cdbus_iter_open(cdbus_iter *iter, int type, const char *signature, cdbus_iter *inside) {
    return dbus_message_iter_open_container(at(iter), type, signature, at(inside));
}

bool cdbus_iter_close(cdbus_iter *iter, cdbus_iter *inside) {
    return dbus_message_iter_close_container(at(iter), at(inside));
}
