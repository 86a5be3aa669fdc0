/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * System calls that change the memory map or the set of processes, as events. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "recorder.h"

/* System call numbers of an architecture (its asm/unistd.h); -1 = has none. */
struct numbers {
    const char *target;
    int mmap, mmap2, old_mmap, munmap, mremap, mprotect, brk, madvise;
    int fork, vfork, clone, execve, execveat, exit, exit_group;
};

static const struct numbers architectures[] = {
    {"arm", -1, 192, -1, 91, 163, 125, 45, 220, 2, 190, 120, 11, 387, 1, 248},
    {"armeb", -1, 192, -1, 91, 163, 125, 45, 220, 2, 190, 120, 11, 387, 1, 248},
    {"i386", -1, 192, 90, 91, 163, 125, 45, 219, 2, 190, 120, 11, 358, 1, 252},
    {"x86_64", 9, -1, -1, 11, 25, 10, 12, 28, 57, 58, 56, 59, 322, 60, 231},
    {"aarch64", 222, -1, -1, 215, 216, 226, 214, 233, -1, -1, 220, 221, 281, 93, 94},
    {"aarch64_be", 222, -1, -1, 215, 216, 226, 214, 233, -1, -1, 220, 221, 281, 93, 94},
    {"riscv64", 222, -1, -1, 215, 216, 226, 214, 233, -1, -1, 220, 221, 281, 93, 94},
    {"riscv32", -1, 222, -1, 215, 216, 226, 214, 233, -1, -1, 220, 221, 281, 93, 94},
};

/* Linux's own values, the same on these architectures. */
enum { GUEST_MAP_ANONYMOUS = 0x20, GUEST_CLONE_VM = 0x100, GUEST_CLONE_VFORK = 0x4000 };

static const struct numbers *nr;
static uint64_t heap_start;

void calls_init(const char *target)
{
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (strcmp(architectures[i].target, target) == 0)
            nr = &architectures[i];
}

static bool forks(const struct vcpu *v, int64_t call)
{
    if (call == nr->clone)
        /* QEMU makes a fork of a vfork. */
        return !(v->args[0] & GUEST_CLONE_VM) || (v->args[0] & GUEST_CLONE_VFORK);
    return call == nr->fork || call == nr->vfork;
}

void calls_enter(struct vcpu *v, int64_t call, const uint64_t args[6])
{
    wire_begin(v, 0);
    v->call = call;
    memcpy(v->args, args, sizeof v->args);
    if (!nr)
        return;
    if (forks(v, call)) {
        wire_drain(v, true);
    } else if (call == nr->clone) {
        /* The first second thread: from here on no batch leaves a slot behind. */
        wire_drain(v, true);
        threads = true;
    } else if (call == nr->execve || call == nr->execveat) {
        /* If it fails, the process goes on and says so by its next frame. */
        wire_drain(v, true);
        wire_totals(v);
        wire_end(v);
    } else if (call == nr->exit || call == nr->exit_group) {
        exit_code = (int)(args[0] & 0xff);
    }
}

/* `"anonymous"`, or the file behind a descriptor. */
static void source(char *out, int room, uint64_t flags, int fd, uint64_t offset)
{
    char link[64], path[1024], text[2048];
    if (!(flags & GUEST_MAP_ANONYMOUS)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof path - 1);
        if (n > 0) {
            path[n] = 0;
            wire_json(text, sizeof text, path);
            snprintf(out, (size_t)room, "{\"file\":{\"path\":\"%s\",\"offset\":%" PRIu64 "}}", text, offset);
            return;
        }
    }
    snprintf(out, (size_t)room, "\"anonymous\"");
}

static void mapped(struct vcpu *v, int64_t call, uint64_t addr)
{
    char text[3072];
    uint64_t len = v->args[1], prot = v->args[2], flags = v->args[3], fd = v->args[4], offset = v->args[5];
    if (call == nr->old_mmap) {
        const uint32_t *a = (const uint32_t *)(uintptr_t)(guest_base + (uint32_t)v->args[0]);
        len = a[1], prot = a[2], flags = a[3], fd = a[4], offset = a[5];
    } else if (call == nr->mmap2) {
        offset = (uint32_t)offset * UINT64_C(4096);
    }
    source(text, sizeof text, flags, (int)fd, offset);
    wire_event(v, "{\"map\":{\"addr\":%" PRIu64 ",\"len\":%" PRIu64 ",\"prot\":%u,\"source\":%s,\"site\":0}}", addr,
               options.wide ? len : (uint32_t)len, (unsigned)(prot & 7), text);
}

static uint64_t narrow(uint64_t n)
{
    return options.wide ? n : (uint32_t)n;
}

void calls_leave(struct vcpu *v, int64_t call, int64_t result)
{
    if (!nr || call != v->call)
        return;
    if (forks(v, call)) {
        if (result == 0)
            wire_forked(v);
        return;
    }
    if (result < 0 && result >= -4095)
        return;
    uint64_t a0 = narrow(v->args[0]), a1 = narrow(v->args[1]), a2 = narrow(v->args[2]), r = narrow((uint64_t)result);
    bool maps = call == nr->mmap || call == nr->mmap2 || call == nr->old_mmap;
    if (!maps && call != nr->munmap && call != nr->mremap && call != nr->mprotect && call != nr->madvise
        && call != nr->brk)
        return;
    if (call == nr->brk) {
        /* The C library first asks where the heap begins. */
        if (heap_start == 0)
            heap_start = r;
        if (a0 == 0)
            return;
    }
    /* The accesses before it, with their counts; no slot survives a change of the map. */
    wire_drain(v, true);
    if (maps)
        mapped(v, call, r);
    else if (call == nr->munmap)
        wire_event(v, "{\"unmap\":{\"addr\":%" PRIu64 ",\"len\":%" PRIu64 "}}", a0, a1);
    else if (call == nr->mremap)
        wire_event(v,
                   "{\"remap\":{\"old_addr\":%" PRIu64 ",\"old_len\":%" PRIu64 ",\"new_addr\":%" PRIu64
                   ",\"new_len\":%" PRIu64 "}}",
                   a0, a1, r, a2);
    else if (call == nr->mprotect)
        wire_event(v, "{\"protect\":{\"addr\":%" PRIu64 ",\"len\":%" PRIu64 ",\"prot\":%u}}", a0, a1, (unsigned)(a2 & 7));
    else if (call == nr->madvise)
        wire_event(v, "{\"advise\":{\"addr\":%" PRIu64 ",\"len\":%" PRIu64 ",\"advice\":%d}}", a0, a1, (int)a2);
    else
        wire_event(v, "{\"brk\":{\"start\":%" PRIu64 ",\"end\":%" PRIu64 "}}", heap_start, r);
    /* At once: another thread may use the new mapping in its next batch. */
    wire_drain(v, false);
}
