// The least a scanner must keep: devices by object path.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct device {
    char *path;
    char *address;
    char *name;
    int16_t rssi;
    uint16_t company;
    uint8_t length;
    uint8_t manufacturer[31];
};

struct device *device_find(const char *path);

/// The device at the path, made if need be.
struct device *device_add(const char *path);

size_t device_count(void);
