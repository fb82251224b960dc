#define _GNU_SOURCE
#include "CBlueCapDBus.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

// All functions of a child between fork and exec (for the guard: until its end) are async-signal-safe: the parent process
// has other threads, and the child inherits their locks in an arbitrary state.

static void reset_signals(void) {
    for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void run_program(const char *program, char *const arguments[], int output, pid_t guard) {
    // The signal is sent when the parent's thread ends, and the guard has only one.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard) _exit(127);
    // Its output goes to the application, which decides what the user reads. After the application has closed the pipe, it
    // is lost.
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    signal(SIGPIPE, SIG_IGN);
    close_range(3, ~0U, 0);
    execv(program, arguments);
    _exit(127);
}

static void remove_all(const char *directory, char *const files[]) {
    // Deletes by relative paths from the directory, without a descriptor, since there may be none.
    if (chdir(directory) == 0) {
        for (size_t index = 0; files[index] != NULL; index++) unlink(files[index]);
        if (chdir("/") != 0) _exit(1);
    }
    rmdir(directory);
}

static void guard_program(
    const char *program, char *const arguments[], const char *directory, char *const files[], int lifeline,
    int output) {
    setsid();
    reset_signals();
    pid_t guard = getpid();
    pid_t child = fork();
    if (child == 0) run_program(program, arguments, output, guard);
    // Nothing but the lifeline stays open: a copy of another guard's lifeline would keep that one alive.
    if (lifeline != 3) dup2(lifeline, 3);
    close_range(4, ~0U, 0);
    // The standard streams would keep the pipes of the application's parent open.
    int nowhere = open("/dev/null", O_RDWR);
    for (int stream = 0; stream < 3 && nowhere >= 0; stream++) dup2(nowhere, stream);
    if (nowhere > 3) close(nowhere);

    if (child > 0) {
        char byte;
        ssize_t count;
        do {
            count = read(3, &byte, 1);
        } while (count > 0 || (count < 0 && errno == EINTR));
        kill(child, SIGTERM);
        kill(child, SIGCONT);
        for (int tries = 0; tries < 200; tries++) {
            if (waitpid(child, NULL, WNOHANG) == child) goto ended;
            poll(NULL, 0, 5);
        }
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
ended:
    remove_all(directory, files);
    _exit(0);
}

pid_t cdbus_spawn_guarded(
    const char *program, char *const arguments[], const char *directory, char *const files[], int *lifeline,
    int *output) {
    int life[2], out[2];
    if (pipe2(life, O_CLOEXEC) < 0) return -errno;
    if (pipe2(out, O_CLOEXEC) < 0) {
        int error = errno;
        close(life[0]);
        close(life[1]);
        return -error;
    }
    // No signal handler of the application may run in the child.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_t guard = fork();
    if (guard == 0) {
        close(life[1]);
        close(out[0]);
        guard_program(program, arguments, directory, files, life[0], out[1]);
    }
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(life[0]);
    close(out[1]);
    if (guard < 0) {
        close(life[1]);
        close(out[0]);
        return -error;
    }
    *lifeline = life[1];
    *output = out[0];
    return guard;
}

void cdbus_wait_guard(pid_t guard) {
    while (waitpid(guard, NULL, 0) < 0 && errno == EINTR) {
    }
}
