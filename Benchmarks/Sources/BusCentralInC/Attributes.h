// The least a central must keep: attributes by object path.

#pragma once

#include <stddef.h>
#include <stdint.h>

struct attribute {
    char *path;
    char uuid[37];
    /// Not a service.
    int is_characteristic;
    uint16_t length;
    uint8_t value[512];
};

struct attribute *attribute_find(const char *path);

/// The attribute at the path, made if need be.
struct attribute *attribute_add(const char *path);

void attributes_remove_all(void);
size_t attribute_count(void);
size_t characteristic_count(void);
/// The characteristics by their paths; null behind the last one.
struct attribute *attribute_characteristic(size_t index);
