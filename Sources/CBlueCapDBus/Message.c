#include "Private.h"

#include <stdlib.h>
#include <string.h>

// cdbus_iter is libdbus's own iterator under another type.
_Static_assert(sizeof(cdbus_iter) >= sizeof(DBusMessageIter), "cdbus_iter has no room for a DBusMessageIter");
_Static_assert(_Alignof(cdbus_iter) >= _Alignof(DBusMessageIter), "cdbus_iter is not aligned for a DBusMessageIter");

static DBusMessage *real(cdbus_message *message) { return (DBusMessage *)message; }
static cdbus_message *ours(DBusMessage *message) { return (cdbus_message *)message; }

void cdbus_get_version(int *major, int *minor, int *micro) { dbus_get_version(major, minor, micro); }
void cdbus_free(char *string) { dbus_free(string); }

bool cdbus_is_address(const char *text) {
    DBusAddressEntry **entries;
    int count;
    if (!dbus_parse_address(text, &entries, &count, NULL)) return false;
    dbus_address_entries_free(entries);
    return true;
}
bool cdbus_is_path(const char *text) { return dbus_validate_path(text, NULL); }
bool cdbus_is_interface(const char *text) { return dbus_validate_interface(text, NULL); }
bool cdbus_is_member(const char *text) { return dbus_validate_member(text, NULL); }
bool cdbus_is_error_name(const char *text) { return dbus_validate_error_name(text, NULL); }
bool cdbus_is_bus_name(const char *text) { return dbus_validate_bus_name(text, NULL); }
bool cdbus_is_signature(const char *text) { return dbus_signature_validate(text, NULL); }
bool cdbus_is_single_type(const char *text) { return dbus_signature_validate_single(text, NULL); }

size_t cdbus_first_type_length(const char *signature) {
    const char *end = signature;
    int depth = 0;
    for (; *end != '\0'; end++) {
        if (*end == '(' || *end == '{') depth++;
        if (*end == ')' || *end == '}') depth--;
        if (*end != 'a' && depth == 0) return (size_t)(end - signature) + 1;
    }
    return 0;
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

cdbus_message *cdbus_message_new_reply(cdbus_message *call) { return ours(dbus_message_new_method_return(real(call))); }

cdbus_message *cdbus_message_new_error(cdbus_message *call, const char *name, const char *text) {
    return ours(dbus_message_new_error(real(call), name, text));
}

cdbus_message *cdbus_message_new(int type) { return ours(dbus_message_new(type)); }
cdbus_message *cdbus_message_copy(cdbus_message *message) { return ours(dbus_message_copy(real(message))); }
void cdbus_message_unref(cdbus_message *message) { dbus_message_unref(real(message)); }

int cdbus_message_type(cdbus_message *message) { return dbus_message_get_type(real(message)); }
uint32_t cdbus_message_serial(cdbus_message *message) { return dbus_message_get_serial(real(message)); }
void cdbus_message_set_serial(cdbus_message *message, uint32_t serial) {
    dbus_message_set_serial(real(message), serial);
}
uint32_t cdbus_message_reply_serial(cdbus_message *message) { return dbus_message_get_reply_serial(real(message)); }
void cdbus_message_set_reply_serial(cdbus_message *message, uint32_t serial) {
    dbus_message_set_reply_serial(real(message), serial);
}
bool cdbus_message_no_reply(cdbus_message *message) { return dbus_message_get_no_reply(real(message)); }
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

const char *cdbus_message_destination(cdbus_message *message) { return dbus_message_get_destination(real(message)); }
const char *cdbus_message_error_name(cdbus_message *message) { return dbus_message_get_error_name(real(message)); }
const char *cdbus_message_signature(cdbus_message *message) { return dbus_message_get_signature(real(message)); }

cdbus_heading cdbus_message_heading(cdbus_message *message) {
    return (cdbus_heading){
        .type = dbus_message_get_type(real(message)),
        .sender = dbus_message_get_sender(real(message)),
        .path = dbus_message_get_path(real(message)),
        .interface = dbus_message_get_interface(real(message)),
        .member = dbus_message_get_member(real(message)),
    };
}

static bool differs(const char *wanted, const char *found) {
    return wanted != NULL && (found == NULL || strcmp(wanted, found) != 0);
}

/// Whether a path is the namespace itself or below it ("/a" has "/a" and "/a/b", not "/ab").
static bool is_below(const char *namespace, const char *path) {
    if (path == NULL) return false;
    size_t length = strlen(namespace);
    if (length == 1) return true;  // "/" has every path
    return strncmp(namespace, path, length) == 0 && (path[length] == '\0' || path[length] == '/');
}

bool cdbus_message_matches(cdbus_message *message, const cdbus_heading *heading, const cdbus_rule *rule) {
    DBusMessage *signal = real(message);
    if (heading->type != DBUS_MESSAGE_TYPE_SIGNAL) return false;
    // The member tells the most signals apart, so it goes first.
    if (differs(rule->member, heading->member)) return false;
    if (differs(rule->interface, heading->interface)) return false;
    if (differs(rule->sender, heading->sender)) return false;
    if (differs(rule->path, heading->path)) return false;
    if (rule->path_namespace != NULL && !is_below(rule->path_namespace, heading->path)) return false;
    if (rule->arg0 == NULL) return true;

    DBusMessageIter first;
    const char *text = NULL;
    if (!dbus_message_iter_init(signal, &first)) return false;
    if (dbus_message_iter_get_arg_type(&first) != DBUS_TYPE_STRING) return false;
    dbus_message_iter_get_basic(&first, &text);
    return !differs(rule->arg0, text);
}

// MARK: Reading

static DBusMessageIter *at(const cdbus_iter *iter) { return (DBusMessageIter *)(uintptr_t)iter; }

const void *cdbus_message_body(cdbus_message *message) {
    DBusMessageIter iterator;
    // Before an iterator looks at a message, libdbus brings it into our byte order.
    if (!dbus_message_iter_init(real(message), &iterator)) return NULL;
    const int type = dbus_message_iter_get_arg_type(&iterator);
    if (type == DBUS_TYPE_STRING || type == DBUS_TYPE_OBJECT_PATH) {
        const char *text = NULL;
        dbus_message_iter_get_basic(&iterator, &text);
        return text - sizeof(uint32_t);
    }
    if (type != DBUS_TYPE_ARRAY) return NULL;
    DBusMessageIter array;
    if (dbus_message_iter_get_element_type(&iterator) == DBUS_TYPE_DICT_ENTRY) {
        dbus_message_iter_recurse(&iterator, &array);
        if (dbus_message_iter_get_arg_type(&array) != DBUS_TYPE_DICT_ENTRY) return NULL;
        DBusMessageIter entry;
        dbus_message_iter_recurse(&array, &entry);
        const int key = dbus_message_iter_get_arg_type(&entry);
        if (key != DBUS_TYPE_STRING && key != DBUS_TYPE_OBJECT_PATH) return NULL;
        const char *text = NULL;
        dbus_message_iter_get_basic(&entry, &text);
        // Before the text: the length of the array, padding to eight bytes, the length of the text.
        return text - 12;
    }
    if (dbus_message_iter_get_element_type(&iterator) != DBUS_TYPE_BYTE) return NULL;
    const char *bytes = NULL;
    int count = 0;
    dbus_message_iter_recurse(&iterator, &array);
    dbus_message_iter_get_fixed_array(&array, &bytes, &count);
    return count > 0 ? bytes - sizeof(uint32_t) : NULL;
}

static uint32_t word(const char *wire, size_t offset) {
    uint32_t value;
    memcpy(&value, wire + offset, sizeof value);
    return value;
}

char *cdbus_message_wire(cdbus_message *message) {
    const uint16_t one = 1;
    const char ours = *(const char *)&one == 1 ? DBUS_LITTLE_ENDIAN : DBUS_BIG_ENDIAN;
    DBusMessageIter iterator;
    char *bytes = NULL;
    int length = 0;
    // Before an iterator looks at a message, libdbus brings it into our byte order.
    dbus_message_iter_init(real(message), &iterator);
    if (!dbus_message_marshal(real(message), &bytes, &length)) return NULL;
    if (bytes[0] == ours) return bytes;
    dbus_free(bytes);
    return NULL;
}

const void *cdbus_wire_body(const char *wire, size_t *length) {
    // The fixed part of the header (16 bytes, with the length of the rest as its last word), the rest, padding to eight.
    *length = word(wire, 4);
    return wire + ((16 + (size_t)word(wire, 12) + 7) & ~(size_t)7);
}

/// Looks for the descriptor that so many others stand before.
static bool find_descriptor(DBusMessageIter *iterator, size_t *before, int *descriptor) {
    for (; dbus_message_iter_get_arg_type(iterator) != DBUS_TYPE_INVALID; dbus_message_iter_next(iterator)) {
        const int type = dbus_message_iter_get_arg_type(iterator);
        if (type == DBUS_TYPE_UNIX_FD) {
            if ((*before)-- > 0) continue;
            dbus_message_iter_get_basic(iterator, descriptor);
            return true;
        }
        if (!dbus_type_is_container(type)) continue;
        DBusMessageIter inside;
        dbus_message_iter_recurse(iterator, &inside);
        if (find_descriptor(&inside, before, descriptor)) return true;
    }
    return false;
}

int cdbus_message_descriptor(cdbus_message *message, size_t before) {
    DBusMessageIter iterator;
    int descriptor = -1;
    if (dbus_message_iter_init(real(message), &iterator)) find_descriptor(&iterator, &before, &descriptor);
    return descriptor;
}

// MARK: Writing

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
