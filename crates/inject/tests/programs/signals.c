/* Uses signals and waits in every way that a library in the process could disturb, and prints what it finds. What it prints
   must not depend on whether there is such a library. With an argument, it does one thing and ends by it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What ppoll is in programs that check their buffers, and both kinds of sigpause. */
int __ppoll_chk(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *, size_t);
int __xpg_sigpause(int);
int bsd_sigpause(int) __asm__("sigpause");

static atomic_int seen[65], wrong, alarms;

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static void spin(double seconds) {
    double end = now() + seconds;
    while (now() < end) {
    }
}

static void count(int signal, siginfo_t *info, void *context) {
    (void)context;
    seen[signal]++;
    if (info->si_code != SI_QUEUE || info->si_value.sival_int != 1000 + signal) wrong++;
}

static void on_alarm(int signal) {
    (void)signal;
    alarms++;
}

static void handle(int signal) {
    struct sigaction action = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    if (sigaction(signal, &action, &before) || before.sa_handler != SIG_DFL) wrong++;
}

static void *thread(void *argument) {
    spin(0.02);
    return argument;
}

static void *writer(void *argument) {
    spin(0.03);
    if (write(*(int *)argument, "x", 1) != 1) wrong++;
    return NULL;
}

/* Signals are found unused, then each is used: by a handler, by waiting, by a descriptor. */
static void realtime_signals(void) {
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) {
        struct sigaction action;
        memset(&action, 1, sizeof action);
        if (sigaction(signal, NULL, &action) || action.sa_handler != SIG_DFL || action.sa_flags) wrong++;
        struct sigaction plain = {.sa_handler = SIG_DFL};
        if (sigaction(signal, &plain, NULL)) wrong++;
    }
    printf("signals %d to %d are unused; wrong %d\n", SIGRTMIN, SIGRTMAX, wrong);

    /* From the top, as a library would take them, too: half of them by handlers, ... */
    for (int signal = SIGRTMAX; signal > 50; signal--) {
        handle(signal);
        for (int turn = 0; turn < 20; turn++) {
            sigqueue(getpid(), signal, (union sigval){.sival_int = 1000 + signal});
            spin(0.0005);
        }
        if (seen[signal] != 20) wrong++;
    }
    printf("handlers saw their signals; wrong %d\n", wrong);

    /* ... some by waiting for them, blocked, ... */
    for (int signal = 50; signal > 45; signal--) {
        sigset_t set, before;
        sigemptyset(&set);
        sigaddset(&set, signal);
        sigprocmask(SIG_BLOCK, &set, &before);
        if (sigismember(&before, signal)) wrong++;
        spin(0.005);
        sigset_t pending;
        sigpending(&pending);
        if (sigismember(&pending, signal)) wrong++;
        sigqueue(getpid(), signal, (union sigval){.sival_int = signal});
        siginfo_t info;
        if (sigwaitinfo(&set, &info) != signal || info.si_value.sival_int != signal) wrong++;
        struct timespec soon = {0, 5000000};
        if (sigtimedwait(&set, &info, &soon) != -1 || errno != EAGAIN) wrong++;
    }
    printf("waiting took what was sent; wrong %d\n", wrong);

    /* ... one by a descriptor, ... */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, 45);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int fd = signalfd(-1, &set, SFD_NONBLOCK);
    spin(0.01);
    struct signalfd_siginfo info;
    if (read(fd, &info, sizeof info) != -1 || errno != EAGAIN) wrong++;
    sigqueue(getpid(), 45, (union sigval){.sival_int = 45});
    if (read(fd, &info, sizeof info) != sizeof info || info.ssi_signo != 45 || info.ssi_int != 45) wrong++;
    printf("a descriptor took what was sent; wrong %d\n", wrong);

    /* ... and all others by old ways, until none is left. */
    for (int number = 44; number >= SIGRTMIN; number--) {
        if (signal(number, SIG_IGN) != SIG_DFL || signal(number, on_alarm) != SIG_IGN) wrong++;
        spin(0.003);
    }
    printf("all are used; wrong %d, alarms %d\n", wrong, alarms);
}

/* Everything blocked for a while, as libraries do. */
static void blocked(void) {
    sigset_t all, before, now_blocked;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    spin(0.01);
    sigset_t pending;
    sigpending(&pending);
    int any = 0;
    for (int signal = 1; signal <= SIGRTMAX; signal++) any += sigismember(&pending, signal) == 1;
    pthread_sigmask(SIG_SETMASK, &before, &now_blocked);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++) any += !sigismember(&now_blocked, signal);
    printf("with all signals blocked %d were strange\n", any);
}

static int not_timed_out(ssize_t result) {
    return result != -1 || errno != EAGAIN;
}

/* Sockets with timeouts, whose calls a handler would end: of a pair, of one that listens, and of one that it gave. */
static void timed_sockets(void) {
    int ended = 0, pair[2], turns = 0;
    struct timeval soon = {0, 3000};
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || bind(listener, (void *)&name, size) || listen(listener, 1)) exit(1);
    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    setsockopt(pair[0], SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
    getsockname(listener, (void *)&name, &size);
    int accepted = connect(client, (void *)&name, size) ? -1 : accept(listener, NULL, NULL);
    static char block[4096];
    while (send(pair[0], block, sizeof block, MSG_DONTWAIT) > 0) {
    }
    for (double end = now() + 0.4; now() < end; turns++) {
        struct iovec part = {block, sizeof block};
        struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
        ended += not_timed_out(recv(pair[0], block, sizeof block, 0));
        ended += not_timed_out(recvfrom(pair[0], block, sizeof block, 0, NULL, NULL));
        ended += not_timed_out(recvmsg(pair[0], &message, 0));
        ended += not_timed_out(read(pair[0], block, sizeof block));
        ended += not_timed_out(readv(pair[0], &part, 1));
        ended += not_timed_out(send(pair[0], block, sizeof block, 0));
        ended += not_timed_out(sendto(pair[0], block, sizeof block, 0, NULL, 0));
        ended += not_timed_out(sendmsg(pair[0], &message, 0));
        ended += not_timed_out(write(pair[0], block, sizeof block));
        ended += not_timed_out(writev(pair[0], &part, 1));
        ended += not_timed_out(accept(listener, NULL, NULL));
        if (accepted >= 0) ended += not_timed_out(recv(accepted, block, sizeof block, 0));
    }
    printf("%d calls on sockets ended early, %s\n", ended, turns > 1 ? "of many" : "of few");
}

/* Calls that a handler would end. */
static void waits(void) {
    int ended = 0, turns = 0, fds[2];
    if (pipe(fds)) exit(1);
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    int set = epoll_create1(0);
    for (double end = now() + 0.4; now() < end; turns++) {
        struct timespec time = {0, 3000000}, until;
        struct timeval same = {0, 3000};
        struct pollfd polled = {.fd = fds[0], .events = POLLIN};
        struct epoll_event event;
        ended += nanosleep(&time, NULL) != 0;
        ended += clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL) != 0;
        ended += usleep(3000) != 0;
        ended += poll(&polled, 1, 3) != 0;
        ended += ppoll(&polled, 1, &time, NULL) != 0;
        ended += __ppoll_chk(&polled, 1, &time, NULL, sizeof polled) != 0;
#if __GLIBC_PREREQ(2, 35)
        ended += epoll_pwait2(set, &event, 1, &time, NULL) != 0;
#endif
        ended += select(0, NULL, NULL, NULL, &same) != 0;
        ended += epoll_wait(set, &event, 1, 3) != 0;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 3000000;
        if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
        ended += sem_timedwait(&semaphore, &until) != -1 || errno != ETIMEDOUT;
    }
    printf("%d waits ended early, %s\n", ended, turns > 3 ? "of many" : "of few");
    char byte;
    pthread_t other;
    pthread_create(&other, NULL, writer, &fds[1]);
    printf("read gave %zd\n", read(fds[0], &byte, 1));
    pthread_join(other, NULL);
}

/* A timer of the program's own ends its waits and comes as often as it is to. */
static void alarm_clock(void) {
    struct sigaction action = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval timer = {{0, 20000}, {0, 20000}};
    alarms = 0;
    setitimer(ITIMER_REAL, &timer, NULL);
    int ended = 0;
    while (alarms < 10) {
        struct timespec time = {1, 0};
        ended += nanosleep(&time, NULL) == -1 && errno == EINTR;
    }
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    /* Alarms that come again, should one come before the wait. */
    timer.it_interval.tv_usec = timer.it_value.tv_usec = 50000;
    setitimer(ITIMER_REAL, &timer, NULL);
    alarms = 0;
    int gave = bsd_sigpause(0);
    printf("sigpause gave %d, %s an alarm\n", gave, alarms ? "after" : "before");
    alarms = 0;
    gave = __xpg_sigpause(SIGALRM);
    printf("the other sigpause gave %d, %s an alarm\n", gave, alarms ? "after" : "before");
    memset(&timer, 0, sizeof timer);
    setitimer(ITIMER_REAL, &timer, NULL);
    sigset_t none;
    sigemptyset(&none);
    alarm(1);
    alarms = 0;
    printf("%d of 10 alarms ended a wait\n", ended);
    printf("sigsuspend gave %d, with %d alarm\n", sigsuspend(&none), alarms);
}

static void threads_and_children(void) {
    int right = 0;
    for (int turn = 0; turn < 20; turn++) {
        pthread_t other;
        void *result = NULL;
        pthread_create(&other, NULL, thread, &seen[turn]);
        pthread_join(other, &result);
        right += result == &seen[turn];
    }
    printf("%d of 20 threads gave their value\n", right);
    int ended = 0;
    for (int turn = 0; turn < 5; turn++) {
        pid_t child = fork();
        if (child == 0) {
            spin(0.02);
            _exit(turn);
        }
        int status;
        ended += waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == turn;
    }
    printf("%d of 5 children gave their value\n", ended);
    printf("a shell gave %d\n", WEXITSTATUS(system("exit 3")));
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IONBF, 0);
    if (count > 1) {
        /* A signal that nobody handles ends the process, also the one that a library has taken. */
        int signal = atoi(arguments[1]);
        printf("about to end by %d\n", signal);
        spin(0.01);
        raise(signal);
        spin(1);
        return 0;
    }
    waits();
    timed_sockets();
    blocked();
    alarm_clock();
    threads_and_children();
    realtime_signals();
    spin(0.02);
    return 7;
}
