/// The few libdbus calls this package uses, behind opaque handles.
///
/// They cover what Swift cannot call (variadics, macros, inline type codes). libdbus's own headers are included only in
/// this module's C files, so that no other module can depend on them by accident.
///
/// All calls with a `cdbus_connection` are made on the one thread that owns it. Messages may be read and released on any
/// thread after they are sent or received.
#ifndef CDBUS_H
#define CDBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct cdbus_message cdbus_message;        // a DBusMessage
typedef struct cdbus_connection cdbus_connection;  // a DBusConnection
typedef struct cdbus_watch cdbus_watch;            // a DBusWatch

/// Storage for a DBusMessageIter; its size is checked where libdbus's headers are known.
typedef struct {
    uint64_t words[9];
} cdbus_iter;

/// The version of the libdbus that this process runs with.
void cdbus_get_version(int *major, int *minor, int *micro);

/// Releases a string that one of these functions returned as `char *`.
void cdbus_free(char *string);

// MARK: Syntax

bool cdbus_is_address(const char *text);
bool cdbus_is_path(const char *text);
bool cdbus_is_interface(const char *text);
bool cdbus_is_member(const char *text);
bool cdbus_is_error_name(const char *text);
bool cdbus_is_bus_name(const char *text);
bool cdbus_is_signature(const char *text);
bool cdbus_is_single_type(const char *text);

/// The length of the first complete type of a valid signature, 0 at its end.
size_t cdbus_first_type_length(const char *signature);

// MARK: Messages

cdbus_message *cdbus_message_new_call(
    const char *destination, const char *path, const char *interface, const char *member);
cdbus_message *cdbus_message_new_signal(const char *path, const char *interface, const char *member);
cdbus_message *cdbus_message_new_reply(cdbus_message *call);
cdbus_message *cdbus_message_new_error(cdbus_message *call, const char *name, const char *text);
cdbus_message *cdbus_message_new(int type);
cdbus_message *cdbus_message_copy(cdbus_message *message);
void cdbus_message_unref(cdbus_message *message);

int cdbus_message_type(cdbus_message *message);
uint32_t cdbus_message_serial(cdbus_message *message);
void cdbus_message_set_serial(cdbus_message *message, uint32_t serial);
uint32_t cdbus_message_reply_serial(cdbus_message *message);
void cdbus_message_set_reply_serial(cdbus_message *message, uint32_t serial);
bool cdbus_message_no_reply(cdbus_message *message);
void cdbus_message_set_no_reply(cdbus_message *message, bool no_reply);
void cdbus_message_set_error_name(cdbus_message *message, const char *name);
void cdbus_message_set_sender(cdbus_message *message, const char *sender);
void cdbus_message_set_destination(cdbus_message *message, const char *destination);

const char *cdbus_message_destination(cdbus_message *message);
const char *cdbus_message_error_name(cdbus_message *message);
const char *cdbus_message_signature(cdbus_message *message);

/// The fields that distinguish messages; null for absent ones. libdbus searches the header for each field, so they are
/// read once. The texts are valid as long as the header is not changed.
typedef struct {
    int type;
    const char *sender;
    const char *path;
    const char *interface;
    const char *member;
} cdbus_heading;

cdbus_heading cdbus_message_heading(cdbus_message *message);

/// The fields that a signal must have; a null pointer matches everything.
typedef struct {
    const char *sender;
    const char *path;
    const char *path_namespace;
    const char *interface;
    const char *member;
    const char *arg0;
} cdbus_rule;

/// Whether the message, with that heading, is a signal that the rule selects, compared in place.
bool cdbus_message_matches(cdbus_message *message, const cdbus_heading *heading, const cdbus_rule *rule);

// MARK: Reading

/// The arguments in wire form, in this machine's byte order, inside the message itself and valid as long as it. Null if
/// their position is unknown: libdbus reveals only the positions of texts and of arrays of bytes, so that the first
/// argument must be one, or a dictionary with texts as keys.
const void *cdbus_message_body(cdbus_message *message);

/// The message in wire form (D-Bus specification, "Message Protocol"), in this machine's byte order: a copy, released
/// with `cdbus_free`. Null if there is no memory for it.
char *cdbus_message_wire(cdbus_message *message);
/// The arguments in that form, and their length in bytes.
const void *cdbus_wire_body(const char *wire, size_t *length);
/// A duplicate of a descriptor: the one after `before` others among the arguments; -1 on failure.
int cdbus_message_descriptor(cdbus_message *message, size_t before);

// MARK: Writing. False means out of memory, or, for a descriptor, that it could not be duplicated.

void cdbus_iter_init_append(cdbus_message *message, cdbus_iter *iter);
bool cdbus_iter_append(cdbus_iter *iter, int type, const void *value);
bool cdbus_iter_append_string(cdbus_iter *iter, int type, const char *value);
bool cdbus_iter_append_bytes(cdbus_iter *iter, const uint8_t *bytes, size_t count);
bool cdbus_iter_open(cdbus_iter *iter, int type, const char *signature, cdbus_iter *inside);
bool cdbus_iter_close(cdbus_iter *iter, cdbus_iter *inside);

// MARK: Connections

/// Opens a private connection, whose loss does not end the process. The authentication proceeds as the watches are
/// handled. On failure returns null and both strings, released with `cdbus_free`.
cdbus_connection *cdbus_connection_open(const char *address, char **error_name, char **error_text);

/// What to call for libdbus's watches. It has time-outs too, but only for its own pending calls, which are not used here.
typedef struct {
    void *data;
    void (*added)(cdbus_watch *watch, void *data);
    void (*removed)(cdbus_watch *watch, void *data);
    void (*toggled)(cdbus_watch *watch, void *data);
} cdbus_handlers;

bool cdbus_connection_set_handlers(cdbus_connection *connection, const cdbus_handlers *handlers);

/// Removes the handlers, closes and releases the connection.
void cdbus_connection_close(cdbus_connection *connection);

/// Queues the message, writes as much as the socket accepts, and sets the message's serial.
bool cdbus_connection_send(cdbus_connection *connection, cdbus_message *message, uint32_t *serial);

/// The next received message, owned by the caller, or null.
cdbus_message *cdbus_connection_pop(cdbus_connection *connection);

bool cdbus_connection_has_output(cdbus_connection *connection);
bool cdbus_connection_can_send_descriptors(cdbus_connection *connection);
void cdbus_connection_set_unique_name(cdbus_connection *connection, const char *name);

enum { CDBUS_READABLE = 1, CDBUS_WRITABLE = 2, CDBUS_ERROR = 4, CDBUS_HANGUP = 8 };

int cdbus_watch_descriptor(cdbus_watch *watch);
unsigned int cdbus_watch_flags(cdbus_watch *watch);
bool cdbus_watch_enabled(cdbus_watch *watch);
void cdbus_watch_handle(cdbus_watch *watch, unsigned int flags);

/// This machine's id for org.freedesktop.DBus.Peer, released with `cdbus_free`; null if it has none.
char *cdbus_machine_id(void);

// MARK: A private bus daemon

/// Starts `program` with `arguments` (null-terminated, the first being its name) under a guard process that ends it
/// and removes the directory (with its `files`, null-terminated) as soon as `*lifeline` is closed, which the kernel
/// does when this process ends for any reason. The program's standard output is `*output`.
/// Both are outside the terminal's process group, so that only the application receives an interrupt from the keyboard.
/// Returns the guard's process id, or minus the error number.
pid_t cdbus_spawn_guarded(
    const char *program, char *const arguments[], const char *directory, char *const files[], int *lifeline,
    int *output);

/// Waits for the guard to end, after the lifeline is closed.
void cdbus_wait_guard(pid_t guard);

#endif
