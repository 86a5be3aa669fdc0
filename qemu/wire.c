/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Frames into the pipe, and the filter that leaves repeats out. docs/explanation/recorders.md describes both. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "recorder.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t process;
/* The pipe has no reader any more, or is closed: the program goes on unrecorded. */
static bool dead;
/* Counts of threads that have ended. */
static uint64_t gone[4];

/* Moves the pipe out of the program's way: above the limit that it sees, so that closing everything spares it. */
void wire_open(int fd)
{
    struct rlimit limit, raised;
    options.fd = fd;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        int high = -1;
        raised = limit;
        raised.rlim_cur = limit.rlim_cur + 1;
        if (raised.rlim_cur <= limit.rlim_max && setrlimit(RLIMIT_NOFILE, &raised) == 0) {
            high = fcntl(fd, F_DUPFD_CLOEXEC, (int)limit.rlim_cur);
            setrlimit(RLIMIT_NOFILE, &limit);
        }
        if (high < 0 && limit.rlim_cur > 8)
            high = fcntl(fd, F_DUPFD_CLOEXEC, (int)limit.rlim_cur - 1);
        if (high >= 0) {
            close(fd);
            options.fd = high;
        }
    }
    fcntl(options.fd, F_SETFD, FD_CLOEXEC);
    process = (uint32_t)getpid();
}

static void write_frame(const unsigned char *frame, int length)
{
    while (!dead) {
        ssize_t n = write(options.fd, frame, (size_t)length);
        if (n == length)
            return;
        if (n < 0 && errno == EINTR)
            continue;
        dead = true;
        if (errno != EPIPE) {
            static const char said[] = "lookaside: the recording stopped: its pipe was closed\n";
            ssize_t ignored = write(2, said, sizeof said - 1);
            (void)ignored;
        }
    }
}

static void put(unsigned char *at, const void *value, size_t size)
{
    memcpy(at, value, size); /* hosts of this plugin are little-endian */
}

static void header(unsigned char *at, uint16_t kind, uint32_t payload, uint32_t thread)
{
    uint16_t magic = MAGIC;
    put(at, &magic, 2);
    put(at + 2, &kind, 2);
    put(at + 4, &payload, 4);
    put(at + 8, &process, 4);
    put(at + 12, &thread, 4);
}

static void close_frame(struct vcpu *v)
{
    if (v->frame == NO_FRAME)
        return;
    uint32_t payload = (uint32_t)(v->used - v->frame - HEADER);
    put(v->batch + v->frame + 4, &payload, 4);
    v->frame = NO_FRAME;
}

/* Writes the batch, a frame at a time. The lock is held. A reader that is gone must not end the program by SIGPIPE. */
static void send_batch(struct vcpu *v)
{
    sigset_t pipe_set, old, pending;
    close_frame(v);
    if (v->used == 0)
        return;
    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
    for (int at = 0; at < v->used;) {
        uint32_t payload;
        memcpy(&payload, v->batch + at + 4, 4);
        write_frame(v->batch + at, HEADER + (int)payload);
        at += HEADER + (int)payload;
    }
    if (dead && !sigismember(&pending, SIGPIPE)) {
        struct timespec now = {0, 0};
        while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    v->used = 0;
}

/* Room for one more record without writing? Opens a frame if so. */
static bool room(struct vcpu *v)
{
    if (v->frame != NO_FRAME && v->used - v->frame + 16 <= FRAME)
        return true;
    close_frame(v);
    if (v->used + FRAME > BATCH)
        return false;
    v->frame = v->used;
    header(v->batch + v->used, ACCESSES, 0, v->thread);
    v->used += HEADER;
    return true;
}

static void append(struct vcpu *v, uint64_t w0, uint64_t w1)
{
    put(v->batch + v->used, &w0, 8);
    put(v->batch + v->used + 8, &w1, 8);
    v->used += 16;
}

void wire_drain(struct vcpu *v, bool empty)
{
    pthread_mutex_lock(&lock);
    if (empty && options.filtered) {
        unsigned slots = 3u << options.classes_log2;
        for (unsigned i = 0; i < slots; i++) {
            struct slot *slot = &v->slots[i];
            if (slot->count != 0) {
                while (!room(v))
                    send_batch(v);
                append(v, slot->unit << options.unit_log2 | (uint64_t)REPEATS << 48
                              | (uint64_t)(i >> options.classes_log2) << 56,
                       slot->count);
            }
            slot->unit = NO_UNIT;
            slot->count = 0;
        }
    }
    send_batch(v);
    pthread_mutex_unlock(&lock);
}

void wire_begin(struct vcpu *v, uint64_t addr)
{
    if (v->thread != 0)
        return;
    v->thread = (uint32_t)syscall(SYS_gettid);
    if (!begun) {
        begun = true;
        maps_initial(v, addr);
    } else {
        wire_event(v, "{\"thread-start\":{\"thread\":%u}}", v->thread);
    }
}

static struct slot *slot_of(struct vcpu *v, enum access kind, uint64_t addr)
{
    uint64_t class = addr >> 12 & ((UINT64_C(1) << options.classes_log2) - 1);
    return &v->slots[(options.table[kind] << options.classes_log2) + class];
}

void wire_more(struct vcpu *v, enum access kind, uint64_t addr, uint32_t more)
{
    if (kind == FETCH)
        v->fetches += more;
    struct slot *slot = slot_of(v, kind, addr & ADDR_MASK);
    if (slot->count + more > 65535) {
        while (!room(v))
            wire_drain(v, threads);
        /* Draining may have emptied the slot; its count is then sent already. */
        if (slot->count != 0)
            append(v, (addr & ADDR_MASK) | (uint64_t)REPEATS << 48 | (uint64_t)options.table[kind] << 56, slot->count);
        slot->count = 0;
        if (slot->unit == NO_UNIT) {
            /* Emptied: these accesses would be nobody's repeats. */
            slot->unit = (addr & ADDR_MASK) >> options.unit_log2;
            append(v, (addr & ADDR_MASK) | (uint64_t)kind << 48, 0);
            more--;
        }
    }
    slot->count += more;
}

void wire_access(struct vcpu *v, enum access kind, uint64_t addr, unsigned size, uint64_t ip)
{
    uint64_t prev = 0;
    if (kind == LOAD)
        v->loads++;
    else if (kind == STORE)
        v->stores++;
    else
        v->fetches++;
    addr &= ADDR_MASK;
    if (options.filtered) {
        struct slot *slot = slot_of(v, kind, addr);
        if (slot->unit == addr >> options.unit_log2) {
            if (slot->count == 65535)
                goto full;
            slot->count++;
            return;
        }
    full:
        wire_begin(v, addr);
        while (!room(v))
            wire_drain(v, threads);
        if (slot->unit == addr >> options.unit_log2) {
            append(v, addr | (uint64_t)REPEATS << 48 | (uint64_t)options.table[kind] << 56, slot->count);
            slot->count = 1;
            return;
        }
        prev = slot->count;
        slot->unit = addr >> options.unit_log2;
        slot->count = 0;
    } else {
        wire_begin(v, addr);
        while (!room(v))
            wire_drain(v, false);
    }
    append(v, addr | (uint64_t)kind << 48 | (uint64_t)(size < 255 ? size : 255) << 56, (ip & ADDR_MASK) | prev << 48);
}

void wire_event(struct vcpu *v, const char *format, ...)
{
    va_list args;
    close_frame(v);
    if (v->used + FRAME > BATCH)
        wire_drain(v, threads);
    char *text = (char *)v->batch + v->used + HEADER;
    va_start(args, format);
    int length = vsnprintf(text, FRAME - HEADER, format, args);
    va_end(args);
    /* Callers cut their paths so that every event fits. */
    if (length < 0 || length >= FRAME - HEADER)
        return;
    header(v->batch + v->used, EVENT, (uint32_t)length, v->thread);
    v->used += HEADER + length;
}

void wire_totals(struct vcpu *v)
{
    uint64_t sum[4] = {gone[0], gone[1], gone[2], gone[3] + serial_instructions};
    for (int i = 0; i < MOST_VCPUS && vcpus[i]; i++) {
        sum[0] += vcpus[i]->loads;
        sum[1] += vcpus[i]->stores;
        sum[2] += vcpus[i]->fetches;
        sum[3] += vcpus[i]->instructions;
    }
    wire_event(v, "{\"totals\":{\"loads\":%llu,\"stores\":%llu,\"fetches\":%llu,\"instructions\":%llu}}",
               (unsigned long long)sum[0], (unsigned long long)sum[1], (unsigned long long)sum[2],
               (unsigned long long)sum[3]);
}

void wire_end(struct vcpu *v)
{
    close_frame(v);
    if (v->used + HEADER > BATCH)
        wire_drain(v, threads);
    header(v->batch + v->used, END, 0, v->thread);
    v->used += HEADER;
    wire_drain(v, false);
}

static void forget(struct vcpu *v)
{
    v->used = 0;
    v->frame = NO_FRAME;
    v->loads = v->stores = v->fetches = v->instructions = 0;
    for (unsigned i = 0; options.filtered && i < 3u << options.classes_log2; i++)
        v->slots[i] = (struct slot){NO_UNIT, 0};
}

void wire_forked(struct vcpu *v)
{
    uint32_t parent = process;
    pthread_mutex_init(&lock, NULL); /* another thread of the parent may have held it */
    process = (uint32_t)getpid();
    for (int i = 0; i < MOST_VCPUS && vcpus[i]; i++) {
        forget(vcpus[i]);
        vcpus[i]->thread = 0;
    }
    memset(gone, 0, sizeof gone);
    serial_instructions = 0;
    exit_code = -1;
    v->thread = process;
    wire_event(v, "{\"fork\":{\"parent\":%u,\"child\":%u}}", parent, process);
    wire_drain(v, true);
}

void wire_gone(struct vcpu *v)
{
    pthread_mutex_lock(&lock);
    gone[0] += v->loads;
    gone[1] += v->stores;
    gone[2] += v->fetches;
    gone[3] += v->instructions;
    pthread_mutex_unlock(&lock);
    forget(v);
    v->thread = 0;
}

void wire_json(char *out, int room, const char *text)
{
    int used = 0;
    for (; *text && used + 7 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\')
            used += snprintf(out + used, 8, "\\%c", c);
        else if (c < 0x20)
            used += snprintf(out + used, 8, "\\u%04x", c);
        else
            out[used++] = (char)c;
    }
    out[used] = 0;
}
