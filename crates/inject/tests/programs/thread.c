/* Makes a thread and waits in some ways; prints the addresses of what the thread runs and of its argument. */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

static void *run(void *argument) {
    *(int *)argument = 1;
    return NULL;
}

int main(void) {
    static int argument;
    pthread_t thread;
    sigset_t none;
    struct timespec time = {0, 1000000};
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, &none, NULL);
    poll(NULL, 0, 1);
    nanosleep(&time, NULL);
    if (pthread_create(&thread, NULL, run, &argument) || pthread_join(thread, NULL)) return 1;
    printf("%lu %lu\n", (unsigned long)run, (unsigned long)&argument);
    return !argument;
}
