/// The few libdbus calls this package uses, behind opaque handles.
///
/// What is here is what Swift cannot call (variadics, macros, inline type codes) or should not see: libdbus's own
/// headers stay inside `CDBus.c`, so that no module of this package can grow a dependency on them by accident.
///
/// Rules of the house: all calls that take a `cdbus_connection` are made on the one thread that owns it; messages may be
/// read and released on any thread once they are sent or received.
#ifndef CDBUS_H
#define CDBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct cdbus_message cdbus_message;        // a DBusMessage
typedef struct cdbus_connection cdbus_connection;  // a DBusConnection
typedef struct cdbus_watch cdbus_watch;            // a DBusWatch
typedef struct cdbus_timeout cdbus_timeout;        // a DBusTimeout

/// Storage for a DBusMessageIter; its size is checked where libdbus's headers are known.
typedef struct {
    uint64_t words[9];
} cdbus_iter;

/// The version of the libdbus that this process runs with.
void cdbus_get_version(int *major, int *minor, int *micro);

/// Releases a string that one of these functions returned as `char *`.
void cdbus_free(char *string);

// MARK: Syntax

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

/// The fields by which messages are told apart; null for those that a message has not. libdbus searches the header at
/// each question, so whoever has several asks once. The texts stay where they are as long as the header is not changed.
typedef struct {
    int type;
    const char *sender;
    const char *path;
    const char *interface;
    const char *member;
} cdbus_heading;

cdbus_heading cdbus_message_heading(cdbus_message *message);

/// What a signal must look like; a null pointer asks for nothing.
typedef struct {
    const char *sender;
    const char *path;
    const char *path_namespace;
    const char *interface;
    const char *member;
    const char *arg0;
} cdbus_rule;

/// Whether the message, of that heading, is a signal that the rule asks for, compared in place.
bool cdbus_message_matches(cdbus_message *message, const cdbus_heading *heading, const cdbus_rule *rule);

// MARK: Reading

/// Where the arguments lie in wire form, in this machine's byte order, inside the message itself; valid as long as it is.
/// Null where that cannot be told: libdbus gives away only where a text or some bytes lie, which here must be the first
/// argument. Their length is in front of them, at the beginning of all.
const void *cdbus_message_body(cdbus_message *message);

/// The message in wire form (D-Bus specification, "Message Protocol"), in this machine's byte order: a copy, released
/// with `cdbus_free`. Null where there is no memory for it.
char *cdbus_message_wire(cdbus_message *message);
/// Where the arguments begin in that form, and how many bytes they take.
const void *cdbus_wire_body(const char *wire, size_t *length);
/// A duplicate of the descriptor that so many others stand before among the arguments; -1 where it could not be had.
int cdbus_message_descriptor(cdbus_message *message, size_t before);

// MARK: Writing. False means out of memory, or, for a descriptor, that it could not be duplicated.

void cdbus_iter_init_append(cdbus_message *message, cdbus_iter *iter);
bool cdbus_iter_append(cdbus_iter *iter, int type, const void *value);
bool cdbus_iter_append_string(cdbus_iter *iter, int type, const char *value);
bool cdbus_iter_append_bytes(cdbus_iter *iter, const uint8_t *bytes, size_t count);
bool cdbus_iter_open(cdbus_iter *iter, int type, const char *signature, cdbus_iter *inside);
bool cdbus_iter_close(cdbus_iter *iter, cdbus_iter *inside);

// MARK: Connections

/// Opens a connection of its own (libdbus shares none of them), which never ends the process when it is lost.
/// Authentication goes on as the watches are handled. On failure gives null and both strings, released with
/// `cdbus_free`.
cdbus_connection *cdbus_connection_open(const char *address, char **error_name, char **error_text);

typedef struct {
    void *data;
    void (*watch_added)(cdbus_watch *watch, void *data);
    void (*watch_removed)(cdbus_watch *watch, void *data);
    void (*watch_toggled)(cdbus_watch *watch, void *data);
    void (*timeout_added)(cdbus_timeout *timeout, void *data);
    void (*timeout_removed)(cdbus_timeout *timeout, void *data);
    void (*timeout_toggled)(cdbus_timeout *timeout, void *data);
} cdbus_handlers;

bool cdbus_connection_set_handlers(cdbus_connection *connection, const cdbus_handlers *handlers);

/// Takes the handlers away, closes and releases the connection.
void cdbus_connection_close(cdbus_connection *connection);

/// Queues the message, writes what the socket takes at once, and gives the message its serial.
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
int cdbus_timeout_milliseconds(cdbus_timeout *timeout);
bool cdbus_timeout_enabled(cdbus_timeout *timeout);
void cdbus_timeout_handle(cdbus_timeout *timeout);

/// This machine's id for org.freedesktop.DBus.Peer, released with `cdbus_free`; null where it has none.
char *cdbus_machine_id(void);

// MARK: A private bus daemon

/// Starts `program` with `arguments` (null-terminated, the first being its name) under a guard process that ends it
/// and removes the directory (with its `files`, null-terminated) as soon as `*lifeline` is closed, which the kernel
/// does when this process dies of whatever cause. The program's standard output is `*output`.
/// Both are out of the terminal's process group: an interrupt from the keyboard is the application's to handle.
/// Gives the guard's process id, or minus the error number.
pid_t cdbus_spawn_guarded(
    const char *program, char *const arguments[], const char *directory, const char *const files[], int *lifeline,
    int *output);

/// Waits for the guard to end, after the lifeline is closed.
void cdbus_wait_guard(pid_t guard);

#endif
