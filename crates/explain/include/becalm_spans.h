/* Spans of a program in C or C++, for `becalm explain`. One header, no library:
 *
 *     #include "becalm_spans.h"
 *
 *     uint64_t start = becalm_span_begin();
 *     step();
 *     becalm_span_end("step", start);
 *
 * Each span is a line of becalm-spans-PID.csv in the current directory, or of the file that the environment variable BECALM_SPANS names, with the
 * number of the process for %p. Names are texts that live as long as the program. A span costs about 0.1 us.
 * Each thread keeps its spans and writes them when it has 4,096 of them, when a span ends a second after the last writing, and when it or the program
 * ends. A program that is killed loses those of its last second. After an error of the file, spans are dropped.
 *
 * Define BECALM_SPANS_OFF to leave all of it out.
 */
#ifndef BECALM_SPANS_H
#define BECALM_SPANS_H

#include <stdint.h>

#ifdef BECALM_SPANS_OFF

static inline uint64_t becalm_span_begin(void) { return 0; }
static inline void becalm_span_end(const char *name, uint64_t start) { (void)name, (void)start; }

#else

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if !defined(CLOCK_MONOTONIC) || !defined(O_CLOEXEC)
#error "becalm_spans.h needs POSIX: compile with -std=gnu11 instead of -std=c11, or with -D_GNU_SOURCE"
#endif

#define BECALM_SPANS_KEPT 4096
#define BECALM_SPANS_INTERVAL_NS UINT64_C(1000000000)

struct becalm_spans_ended {
    const char *name;
    uint64_t start, end;
};

/* The spans of a thread. */
struct becalm_spans_thread {
    struct becalm_spans_thread *next;
    uint64_t written;
    unsigned generation;
    int tid;
    /* Spans before this place are complete. */
    int count;
    struct becalm_spans_ended kept[BECALM_SPANS_KEPT];
};

/* One for all files of a program that include this header. A shared library that is loaded later may have its own, with a file of its own. */
#define BECALM_SPANS_SHARED __attribute__((weak))
/* Only used with the lock. */
BECALM_SPANS_SHARED int becalm_spans_file = -1;
BECALM_SPANS_SHARED int becalm_spans_finished = 0;
BECALM_SPANS_SHARED unsigned becalm_spans_generation = 1;
BECALM_SPANS_SHARED pthread_once_t becalm_spans_once = PTHREAD_ONCE_INIT;
BECALM_SPANS_SHARED pthread_mutex_t becalm_spans_lock = PTHREAD_MUTEX_INITIALIZER;
BECALM_SPANS_SHARED pthread_key_t becalm_spans_key;
BECALM_SPANS_SHARED struct becalm_spans_thread *becalm_spans_threads = NULL;
BECALM_SPANS_SHARED __thread struct becalm_spans_thread *becalm_spans_mine = NULL;

static inline uint64_t becalm_span_begin(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * UINT64_C(1000000000) + (uint64_t)time.tv_nsec;
}

/* Appends the digits of a number and a comma. */
static inline char *becalm_spans_number(char *at, uint64_t number) {
    char digits[20];
    int first = sizeof digits;
    while (number >= 100) {
        unsigned pair = (unsigned)(number % 100);
        number /= 100;
        digits[--first] = (char)('0' + pair % 10);
        digits[--first] = (char)('0' + pair / 10);
    }
    if (number >= 10) digits[--first] = (char)('0' + number % 10), number /= 10;
    digits[--first] = (char)('0' + number);
    memcpy(at, digits + first, sizeof digits - (size_t)first);
    at += sizeof digits - (size_t)first;
    *at++ = ',';
    return at;
}

/* Writes whole lines, in one call each time. */
static inline void becalm_spans_put(const char *text, size_t length) {
    while (length && becalm_spans_file >= 0) {
        ssize_t done = write(becalm_spans_file, text, length);
        if (done < 0 && errno != EINTR) {
            becalm_spans_file = -1;
        } else if (done > 0) {
            text += done;
            length -= (size_t)done;
        }
    }
}

/* With the lock. */
static inline void becalm_spans_format(const struct becalm_spans_thread *thread, int count) {
    char text[1 << 14], *at = text;
    for (int number = 0; number < count; number++) {
        const struct becalm_spans_ended *span = &thread->kept[number];
        size_t length = 0;
        while (length < 256 && span->name[length]) length++;
        if (at + 3 * 21 + length + 1 > text + sizeof text) {
            becalm_spans_put(text, (size_t)(at - text));
            at = text;
        }
        at = becalm_spans_number(at, (uint64_t)thread->tid);
        at = becalm_spans_number(at, span->start);
        at = becalm_spans_number(at, span->end - span->start);
        for (size_t place = 0; place < length; place++) {
            /* What separates fields and lines is left out of names. */
            char letter = span->name[place];
            *at++ = letter == ',' || letter == '"' || letter == '\n' || letter == '\r' ? '_' : letter;
        }
        *at++ = '\n';
    }
    becalm_spans_put(text, (size_t)(at - text));
}

/* Writes the spans of the calling thread. */
static inline void becalm_spans_write(struct becalm_spans_thread *thread) {
    pthread_mutex_lock(&becalm_spans_lock);
    /* Once the program ends, they have been written. */
    if (!becalm_spans_finished) becalm_spans_format(thread, thread->count);
    __atomic_store_n(&thread->count, 0, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&becalm_spans_lock);
}

/* A thread ends: its spans are written, and its memory is returned. */
static inline void becalm_spans_leave(void *memory) {
    struct becalm_spans_thread *thread = (struct becalm_spans_thread *)memory, **place;
    pthread_mutex_lock(&becalm_spans_lock);
    if (thread->generation == becalm_spans_generation && !becalm_spans_finished) becalm_spans_format(thread, thread->count);
    for (place = &becalm_spans_threads; *place; place = &(*place)->next) {
        if (*place == thread) {
            *place = thread->next;
            break;
        }
    }
    pthread_mutex_unlock(&becalm_spans_lock);
    becalm_spans_mine = NULL;
    free(thread);
}

/* The program ends. */
static inline void becalm_spans_finish(void) {
    pthread_mutex_lock(&becalm_spans_lock);
    for (struct becalm_spans_thread *thread = becalm_spans_threads; thread; thread = thread->next) {
        /* Other threads may still add some. */
        int count = __atomic_load_n(&thread->count, __ATOMIC_ACQUIRE);
        if (thread->generation == becalm_spans_generation) becalm_spans_format(thread, count);
    }
    becalm_spans_finished = 1;
    pthread_mutex_unlock(&becalm_spans_lock);
}

/* In a child process: the parent writes the spans so far. */
static inline void becalm_spans_fork(void) {
    becalm_spans_generation++;
    becalm_spans_finished = 0;
    pthread_mutex_init(&becalm_spans_lock, NULL);
}

static inline void becalm_spans_open(void) {
    static const char header[] = "# clock: monotonic\ntid,start_ns,duration_ns,name\n";
    const char *wanted = getenv("BECALM_SPANS"), *mark;
    char path[4096];
    if (!wanted) wanted = "becalm-spans-%p.csv";
    mark = strstr(wanted, "%p");
    if (mark) {
        snprintf(path, sizeof path, "%.*s%ld%s", (int)(mark - wanted), wanted, (long)getpid(), mark + 2);
    } else {
        snprintf(path, sizeof path, "%s", wanted);
    }
    /* A file that exists holds the spans of another process, or of another library of this one. */
    becalm_spans_file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    for (int number = 1; becalm_spans_file < 0 && errno == EEXIST && !getenv("BECALM_SPANS") && number < 100; number++) {
        snprintf(path, sizeof path, "becalm-spans-%ld-%d.csv", (long)getpid(), number);
        becalm_spans_file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    }
    if (becalm_spans_file < 0) {
        fprintf(stderr, "becalm_spans.h: cannot create %s: %s; no spans are written\n", path, strerror(errno));
    }
    becalm_spans_put(header, sizeof header - 1);
    pthread_key_create(&becalm_spans_key, becalm_spans_leave);
    pthread_atfork(NULL, NULL, becalm_spans_fork);
    atexit(becalm_spans_finish);
}

/* The spans of this thread; NULL without memory. */
static inline struct becalm_spans_thread *becalm_spans_join(uint64_t now) {
    struct becalm_spans_thread *thread = becalm_spans_mine;
    pthread_once(&becalm_spans_once, becalm_spans_open);
    if (!thread) {
        thread = (struct becalm_spans_thread *)calloc(1, sizeof *thread);
        if (!thread) return NULL;
        pthread_mutex_lock(&becalm_spans_lock);
        thread->next = becalm_spans_threads;
        becalm_spans_threads = thread;
        pthread_mutex_unlock(&becalm_spans_lock);
        pthread_setspecific(becalm_spans_key, thread);
        becalm_spans_mine = thread;
    }
    thread->generation = becalm_spans_generation;
    thread->tid = (int)syscall(SYS_gettid);
    thread->count = 0;
    thread->written = now;
    return thread;
}

static inline void becalm_span_end(const char *name, uint64_t start) {
    uint64_t end = becalm_span_begin();
    struct becalm_spans_thread *thread = becalm_spans_mine;
    struct becalm_spans_ended *span;
    if (!thread || thread->generation != becalm_spans_generation) {
        thread = becalm_spans_join(end);
        if (!thread) return;
    }
    span = &thread->kept[thread->count];
    span->name = name;
    span->start = start;
    /* A start that is none has no length. */
    span->end = end > start ? end : start;
    __atomic_store_n(&thread->count, thread->count + 1, __ATOMIC_RELEASE);
    if (thread->count == BECALM_SPANS_KEPT || end - thread->written >= BECALM_SPANS_INTERVAL_NS) {
        thread->written = end;
        becalm_spans_write(thread);
    }
}

#endif
#endif
