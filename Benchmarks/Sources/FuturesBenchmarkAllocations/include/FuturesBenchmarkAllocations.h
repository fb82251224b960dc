#ifndef FUTURES_BENCHMARK_ALLOCATIONS_H
#define FUTURES_BENCHMARK_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

/// Switches counting on or off; it is off at first, so that timings do not pay for it.
void allocations_count(bool counting);

/// How many times any thread has allocated while counting was on.
uint64_t allocations_so_far(void);

#endif
