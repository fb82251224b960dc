/// The kernel's epoll and eventfd, which Swift's own Glibc module leaves out.
#ifndef CREACTOR_H
#define CREACTOR_H

#include <sys/epoll.h>
#include <sys/eventfd.h>

/// Names the calling thread for debuggers; the kernel keeps fifteen bytes.
void creactor_name_thread(const char *name);

#endif
