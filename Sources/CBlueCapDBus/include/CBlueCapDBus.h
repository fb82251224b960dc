/// The few libdbus calls this package uses, behind opaque handles.
///
/// They cover what Swift cannot call (variadics, macros, inline type codes). libdbus's own headers are included only in
/// this module's C files, so that no other module can depend on them by accident.
///
/// All calls with a `cdbus_connection` are made on the one thread that owns it. Messages may be released on any thread after
/// they are sent. libdbus opens connections, authenticates and sends; it reads nothing after the authentication.
#ifndef CDBUS_H
#define CDBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct cdbus_message cdbus_message;        // a DBusMessage that this process creates
typedef struct cdbus_connection cdbus_connection;  // a DBusConnection
typedef struct cdbus_watch cdbus_watch;            // a DBusWatch

/// Storage for a DBusMessageIter; its size is checked where libdbus's headers are known.
typedef struct {
    uint64_t words[9];
} cdbus_iter;

/// Releases a string that one of these functions returned as `char *`.
void cdbus_free(char *string);

/// Whether libdbus can parse the text as the address of a bus.
bool cdbus_is_address(const char *text);

// MARK: Messages

cdbus_message *cdbus_message_new_call(
    const char *destination, const char *path, const char *interface, const char *member);
cdbus_message *cdbus_message_new_signal(const char *path, const char *interface, const char *member);
cdbus_message *cdbus_message_new(int type);
cdbus_message *cdbus_message_copy(cdbus_message *message);
/// A null path removes that of the message. False means out of memory.
bool cdbus_message_set_path(cdbus_message *message, const char *path);
void cdbus_message_unref(cdbus_message *message);

int cdbus_message_type(cdbus_message *message);
uint32_t cdbus_message_serial(cdbus_message *message);
void cdbus_message_set_serial(cdbus_message *message, uint32_t serial);
void cdbus_message_set_reply_serial(cdbus_message *message, uint32_t serial);
void cdbus_message_set_no_reply(cdbus_message *message, bool no_reply);
void cdbus_message_set_error_name(cdbus_message *message, const char *name);
void cdbus_message_set_sender(cdbus_message *message, const char *sender);
void cdbus_message_set_destination(cdbus_message *message, const char *destination);

const char *cdbus_message_signature(cdbus_message *message);

/// The message in wire form (D-Bus specification, "Message Protocol"): a copy, released with `cdbus_free`. False if there is
/// no memory for it.
bool cdbus_message_marshal(cdbus_message *message, char **bytes, int *count);

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

/// Whether the bus has accepted this process: from then on the socket carries messages, which libdbus must not read.
bool cdbus_connection_is_authenticated(cdbus_connection *connection);

bool cdbus_connection_has_output(cdbus_connection *connection);

enum { CDBUS_READABLE = 1, CDBUS_WRITABLE = 2, CDBUS_ERROR = 4, CDBUS_HANGUP = 8 };

int cdbus_watch_descriptor(cdbus_watch *watch);
unsigned int cdbus_watch_flags(cdbus_watch *watch);
bool cdbus_watch_enabled(cdbus_watch *watch);
void cdbus_watch_handle(cdbus_watch *watch, unsigned int flags);

/// The number of descriptors that Linux carries with one message at most (SCM_MAX_FD).
enum { CDBUS_MOST_DESCRIPTORS = 253 };

/// Reads from a socket without waiting: at most `size` bytes, and the descriptors that came with them, of which there is room
/// for `CDBUS_MOST_DESCRIPTORS`. Returns the number of bytes, 0 at the end, or minus the error number: `EMFILE` if a
/// descriptor could not be received; then none is.
ssize_t cdbus_receive(int socket, void *bytes, size_t size, int *descriptors, size_t *count);

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
