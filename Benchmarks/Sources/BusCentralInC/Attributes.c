#include "Attributes.h"

#include <stdlib.h>
#include <string.h>

/// Open addressing; never more than a quarter full here.
#define CAPACITY 1024
static struct attribute *places[CAPACITY];
static size_t count;

static struct attribute **place_of(const char *path) {
    uint64_t hash = 14695981039346656037u;
    for (const char *at = path; *at; at++) hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    size_t index = hash & (CAPACITY - 1);
    while (places[index] != NULL && strcmp(places[index]->path, path) != 0) index = (index + 1) & (CAPACITY - 1);
    return &places[index];
}

struct attribute *attribute_find(const char *path) { return *place_of(path); }

struct attribute *attribute_add(const char *path) {
    struct attribute **place = place_of(path);
    if (*place == NULL) {
        if (count == CAPACITY / 2) abort();
        *place = calloc(1, sizeof **place);
        if (*place == NULL) abort();
        (*place)->path = strdup(path);
        count++;
    }
    return *place;
}

void attributes_remove_all(void) {
    for (size_t i = 0; i < CAPACITY; i++) {
        if (places[i] == NULL) continue;
        free(places[i]->path);
        free(places[i]);
        places[i] = NULL;
    }
    count = 0;
}

size_t attribute_count(void) { return count; }

size_t characteristic_count(void) {
    size_t found = 0;
    for (size_t i = 0; i < CAPACITY; i++) found += places[i] != NULL && places[i]->is_characteristic;
    return found;
}

struct attribute *attribute_characteristic(size_t index) {
    const char *last = "";
    struct attribute *found = NULL;
    for (size_t turn = 0; turn <= index; turn++) {
        found = NULL;
        for (size_t i = 0; i < CAPACITY; i++) {
            if (places[i] == NULL || !places[i]->is_characteristic || strcmp(places[i]->path, last) <= 0) continue;
            if (found == NULL || strcmp(places[i]->path, found->path) < 0) found = places[i];
        }
        if (found == NULL) return NULL;
        last = found->path;
    }
    return found;
}
