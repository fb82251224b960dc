/// The kernel's epoll and eventfd, which Swift's own Glibc module leaves out.
#ifndef CREACTOR_H
#define CREACTOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

/// Names the calling thread for debuggers; the kernel keeps fifteen bytes.
void creactor_name_thread(const char *name);

/// Waits so long, at most one second, or until `waker` is readable.
void creactor_rest(int waker, long nanoseconds);

/// How many packets one call can receive.
enum { CREACTOR_MOST_PACKETS = 32 };

/// Receives up to `count` packets that are there already, each into its `size` bytes of the buffer; what is longer is cut.
/// Gives how many there were, or minus the error number. At the end of the stream every packet has the length 0.
int creactor_receive_packets(int descriptor, void *buffer, size_t size, uint32_t *lengths, unsigned int count);

/// Gives how many bytes of what was sent to a local socket its other end has not read (SIOCOUTQ), or minus the error number.
int creactor_unread_bytes(int descriptor);

#endif
