/* Reads the clock for so many seconds, and prints how many of the steps were longer than so many microseconds, and their
   median in nanoseconds, twice: of the first half and of the second. With a CPU it does so there, and prints when each of
   these steps began and how long it was instead. Ahead of others where it may be, as their time would be in the steps. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static long long lengths[1 << 16], starts[1 << 16];

static int order(const void *a, const void *b) {
    long long first = *(const long long *)a, second = *(const long long *)b;
    return (first > second) - (first < second);
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    long long length = (long long)(atof(arguments[1]) * 1e9), over = atol(arguments[2]) * 1000;
    struct sched_param ahead = {.sched_priority = 1};
    // Not allowed to, it shares the CPU like everybody else.
    (void)!sched_setscheduler(0, SCHED_RR, &ahead);
    if (count > 3) {
        cpu_set_t own;
        CPU_ZERO(&own);
        CPU_SET(atoi(arguments[3]), &own);
        if (sched_setaffinity(0, sizeof own, &own)) return 3;
    }
    for (int half = 0; half < 2; half++) {
        long long begin = now(), last = begin, steps = 0;
        while (last - begin < length / 2) {
            long long time = now();
            if (time - last > over && steps < 1 << 16) {
                starts[steps] = last;
                lengths[steps++] = time - last;
            }
            last = time;
        }
        if (count > 3) {
            for (long long step = 0; step < steps; step++) printf("%lld %lld\n", starts[step], lengths[step]);
            continue;
        }
        qsort(lengths, steps, sizeof *lengths, order);
        printf("%lld %lld\n", steps, steps ? lengths[steps / 2] : 0);
        fflush(stdout);
    }
    return 0;
}
