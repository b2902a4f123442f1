/* A slow disk, to be preloaded: every call on a file below $SLOW_FOLDER takes $SLOW_MICROSECONDS longer, a call that
 * syncs ten times that, and one call in STALL half a second more. Pages that are mapped are read without a call.
 * $SLOW_NOTES is a file of two 64-bit numbers, shared by all processes: the slow calls and the microseconds waited. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SYNC 10
#define STALL 250
#define STALL_MICROSECONDS 500000L

static atomic_long unshared[2], *notes = unshared;

__attribute__((constructor)) static void share_notes(void) {
    const char *path = getenv("SLOW_NOTES");
    int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *mapped = mmap(NULL, sizeof unshared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) notes = mapped;
    close(file);
}

static int below(const char *path) {
    const char *folder = getenv("SLOW_FOLDER");
    size_t length = folder ? strlen(folder) : 0;
    return length && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int handle_below(int handle) {
    char link[64], path[PATH_MAX + 1];
    snprintf(link, sizeof link, "/proc/self/fd/%d", handle);
    ssize_t length = readlink(link, path, PATH_MAX);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static int path_below(int folder, const char *path) {
    return path && (path[0] == '/' ? below(path) : folder != AT_FDCWD && handle_below(folder));
}

static void wait_for(int is_slow, long times) {
    if (!is_slow) return;
    const char *each = getenv("SLOW_MICROSECONDS");
    long wait = (each ? atol(each) : 0) * times;
    if (atomic_fetch_add(&notes[0], 1) % STALL == STALL - 1) wait += STALL_MICROSECONDS;
    atomic_fetch_add(&notes[1], wait);
    struct timespec left = {wait / 1000000, wait % 1000000 * 1000};
    while (nanosleep(&left, &left));
}

#define SLOW(type, name, declared, given, is_slow, times)                       \
    type name declared {                                                        \
        static type(*real) declared;                                            \
        if (!real) real = (type(*) declared)dlsym(RTLD_NEXT, #name);            \
        wait_for(is_slow, times);                                               \
        return real given;                                                      \
    }

#define OPENS(name)                                                             \
    int name(const char *path, int flags, ...) {                                \
        static int (*real)(const char *, int, ...);                             \
        if (!real) real = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name); \
        va_list rest;                                                           \
        va_start(rest, flags);                                                  \
        mode_t mode = va_arg(rest, mode_t);                                     \
        va_end(rest);                                                           \
        wait_for(path_below(AT_FDCWD, path), 1);                                \
        return real(path, flags, mode);                                         \
    }

OPENS(open)
OPENS(open64)

SLOW(ssize_t, read, (int file, void *data, size_t size), (file, data, size), handle_below(file), 1)
SLOW(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), handle_below(file), 1)
SLOW(ssize_t, pread, (int file, void *data, size_t size, off_t at), (file, data, size, at), handle_below(file), 1)
SLOW(ssize_t, pread64, (int file, void *data, size_t size, off64_t at), (file, data, size, at), handle_below(file), 1)
SLOW(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at), handle_below(file), 1)
SLOW(ssize_t, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at), handle_below(file), 1)
SLOW(ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count), handle_below(file), 1)
SLOW(ssize_t, sendfile, (int to, int from, off_t *at, size_t size), (to, from, at, size), handle_below(to), 1)
SLOW(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size), handle_below(to), 1)
SLOW(size_t, fwrite, (const void *data, size_t size, size_t count, FILE *file), (data, size, count, file), handle_below(fileno(file)), 1)
SLOW(int, ftruncate, (int file, off_t size), (file, size), handle_below(file), 1)
SLOW(int, ftruncate64, (int file, off64_t size), (file, size), handle_below(file), 1)
SLOW(int, fsync, (int file), (file), handle_below(file), SYNC)
SLOW(int, fdatasync, (int file), (file), handle_below(file), SYNC)
SLOW(int, msync, (void *data, size_t size, int flags), (data, size, flags), 1, SYNC)
SLOW(int, rename, (const char *old, const char *new), (old, new), path_below(AT_FDCWD, new), 1)
SLOW(int, renameat, (int at, const char *old, int to, const char *new), (at, old, to, new), path_below(to, new), 1)
SLOW(int, renameat2, (int at, const char *old, int to, const char *new, unsigned flags), (at, old, to, new, flags), path_below(to, new), 1)
SLOW(int, unlink, (const char *path), (path), path_below(AT_FDCWD, path), 1)
SLOW(int, unlinkat, (int at, const char *path, int flags), (at, path, flags), path_below(at, path), 1)
SLOW(int, mkdir, (const char *path, mode_t mode), (path, mode), path_below(AT_FDCWD, path), 1)
SLOW(int, mkdirat, (int at, const char *path, mode_t mode), (at, path, mode), path_below(at, path), 1)
SLOW(int, rmdir, (const char *path), (path), path_below(AT_FDCWD, path), 1)
