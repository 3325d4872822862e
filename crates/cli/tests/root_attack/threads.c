/* Starts programs from many threads at once: `threads fork|vfork|posix_spawn|system COUNT`; or, with `sleep`, nothing: the threads sleep. Each thread has a stack of 16 KiB, as
 * far as the C library gives so little, sends itself a real-time signal that it handles, starts a program and waits for it.
 * Prints how many programs ended as they should, and what else went wrong. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char *way;
static atomic_int programs, wrong, handled;
static char *const words[] = {"sh", "-c", "exit 7", NULL};

static void on_signal(int signal) {
    (void)signal;
    handled++;
}

static int started(void) {
    pid_t child = -1;
    int status = 0;
    if (!strcmp(way, "system")) return system("exit 7");
    if (!strcmp(way, "posix_spawn")) {
        if (posix_spawnp(&child, words[0], NULL, NULL, words, environ)) return -1;
    } else if (!strcmp(way, "vfork")) {
        child = vfork();
        if (child == 0) {
            execvp(words[0], words);
            _exit(1);
        }
    } else {
        child = fork();
        if (child == 0) {
            execvp(words[0], words);
            _exit(1);
        }
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return -1;
    return status;
}

static void *run(void *argument) {
    if (!strcmp(way, "sleep")) {
        for (;;) pause();
    }
    int signal = SIGRTMIN + (int)(long)argument % (SIGRTMAX - SIGRTMIN + 1);
    if (pthread_kill(pthread_self(), signal)) wrong++;
    int status = started();
    if (WIFEXITED(status) && WEXITSTATUS(status) == 7) programs++;
    else wrong++;
    return NULL;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    way = arguments[1];
    int threads = atoi(arguments[2]), made = 0;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
        if (sigaction(signal, &action, NULL)) wrong++;
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    size_t size = 16384 < PTHREAD_STACK_MIN ? (size_t)PTHREAD_STACK_MIN : 16384;
    /* What system(3) needs is not promised to fit. */
    if (!strcmp(way, "system") || pthread_attr_setstacksize(&small, size)) pthread_attr_setstacksize(&small, 65536);
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    for (long number = 0; number < threads; number++) {
        if (pthread_create(&all[number], &small, run, (void *)number)) wrong++;
        else made++;
    }
    for (int number = 0; number < made; number++) pthread_join(all[number], NULL);
    if (handled != made) wrong++;
    printf("%d threads, %d programs, %d wrong\n", made, programs, wrong);
    return wrong != 0;
}
