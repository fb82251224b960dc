#include "Devices.h"

#include <stdlib.h>
#include <string.h>

/// Open addressing, a power of two of places, at most half of them taken.
static struct device **places;
static size_t capacity, count;

static uint64_t hash(const char *path) {
    uint64_t value = 14695981039346656037u;
    for (; *path; path++) value = (value ^ (uint8_t)*path) * 1099511628211u;
    return value;
}

static struct device **place_of(const char *path) {
    size_t index = hash(path) & (capacity - 1);
    while (places[index] != NULL && strcmp(places[index]->path, path) != 0) index = (index + 1) & (capacity - 1);
    return &places[index];
}

static void grow(void) {
    struct device **old = places;
    const size_t old_capacity = capacity;
    capacity = capacity ? capacity * 2 : 64;
    places = calloc(capacity, sizeof *places);
    if (places == NULL) abort();
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i] != NULL) *place_of(old[i]->path) = old[i];
    }
    free(old);
}

struct device *device_find(const char *path) { return capacity ? *place_of(path) : NULL; }

struct device *device_add(const char *path) {
    if (count * 2 >= capacity) grow();
    struct device **place = place_of(path);
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
        if (*place == NULL) abort();
        (*place)->path = strdup(path);
        count++;
    }
    return *place;
}

size_t device_count(void) { return count; }
