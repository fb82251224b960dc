#define _GNU_SOURCE
#include "CBlueCapReactor.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

void creactor_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

void creactor_rest(int waker, long nanoseconds) {
    struct pollfd descriptor = {.fd = waker, .events = POLLIN};
    struct timespec time = {.tv_nsec = nanoseconds};
    ppoll(&descriptor, 1, &time, NULL);
}

int creactor_receive_packets(int descriptor, void *buffer, size_t size, uint32_t *lengths, unsigned int count) {
    struct iovec places[CREACTOR_MOST_PACKETS];
    struct mmsghdr headers[CREACTOR_MOST_PACKETS];
    if (count > CREACTOR_MOST_PACKETS) count = CREACTOR_MOST_PACKETS;
    for (unsigned int index = 0; index < count; index++) {
        places[index] = (struct iovec){.iov_base = (char *)buffer + index * size, .iov_len = size};
        headers[index] = (struct mmsghdr){.msg_hdr = {.msg_iov = &places[index], .msg_iovlen = 1}};
    }
    int received;
    do {
        received = recvmmsg(descriptor, headers, count, MSG_DONTWAIT, NULL);
    } while (received < 0 && errno == EINTR);
    if (received < 0) return -errno;
    for (int index = 0; index < received; index++) lengths[index] = headers[index].msg_len;
    return received;
}

int creactor_unread_bytes(int descriptor) {
    int bytes = 0;
    return ioctl(descriptor, SIOCOUTQ, &bytes) < 0 ? -errno : bytes;
}
