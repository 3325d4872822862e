/* Takes a tracing instance's trace_marker away from the program into which it is preloaded, as a security module or a kernel does that
 * has none: MARKER=refuse refuses to open it, MARKER=swallow opens what takes every mark and shows none. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef int opening(const char *, int, ...);

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
    const char *way = getenv("MARKER");
    const char *end = strrchr(path, '/');
    if (way && end && strcmp(end, "/trace_marker") == 0) {
        if (strcmp(way, "refuse") == 0) {
            errno = EACCES;
            return -1;
        }
        path = "/dev/null";
    }
    return ((opening *)dlsym(RTLD_NEXT, name))(path, flags, mode);
}

#define OPEN(name)                                      \
    int name(const char *path, int flags, ...)          \
    {                                                   \
        va_list rest;                                   \
        va_start(rest, flags);                          \
        mode_t mode = va_arg(rest, mode_t);             \
        va_end(rest);                                   \
        return open_as(#name, path, flags, mode);       \
    }

OPEN(open)
OPEN(open64)
