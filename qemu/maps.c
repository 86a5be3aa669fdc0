/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * The memory map that the program begins with: what QEMU has mapped for it since the plugin was loaded. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder.h"

enum { MOST_RANGES = 1024, PATH_ROOM = 1024 };

struct range {
    uint64_t start, end, offset;
    unsigned prot;
    char path[PATH_ROOM];
};

static uint64_t before[MOST_RANGES][2];
static int n_before;

/* The next line of /proc/self/maps. */
static bool next(FILE *maps, struct range *r)
{
    char line[PATH_ROOM + 128], prot[8];
    int at = 0;
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %n", &r->start, &r->end, prot, &r->offset, &at) < 4)
            continue;
        line[strcspn(line, "\n")] = 0;
        r->prot = (prot[0] == 'r') | (prot[1] == 'w') << 1 | (prot[2] == 'x') << 2;
        snprintf(r->path, sizeof r->path, "%s", line + at);
        return true;
    }
    return false;
}

/* What is there before the program is loaded is QEMU's own. */
void maps_before(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct range *r = malloc(sizeof *r);
    while (maps && r && n_before < MOST_RANGES && next(maps, r)) {
        before[n_before][0] = r->start;
        before[n_before++][1] = r->end;
    }
    free(r);
    if (maps)
        fclose(maps);
}

static bool ours(const struct range *r)
{
    for (int i = 0; i < n_before; i++)
        if (r->start < before[i][1] && before[i][0] < r->end)
            return true;
    return false;
}

/* A 32-bit program has 4 GiB from guest_base on for itself. A 64-bit one shares all addresses with QEMU: its mappings are those
 * of files, those that follow one without a gap (bss), and the one of its first access, the stack. */
void maps_initial(struct vcpu *v, uint64_t first_addr)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    struct range *r = malloc(sizeof *r);
    char path[2 * PATH_ROOM], source[2 * PATH_ROOM + 128];
    uint64_t limit = options.wide ? UINT64_MAX : guest_base + (UINT64_C(1) << 32), follows = 0;
    while (maps && r && next(maps, r)) {
        if (r->start < guest_base || r->end > limit || r->prot == 0 || ours(r))
            continue;
        uint64_t addr = r->start - guest_base, len = r->end - r->start;
        bool file = r->path[0] == '/', stack = !file && first_addr - addr < len;
        if (options.wide && !file && !stack && follows != r->start)
            continue;
        follows = r->end;
        if (file) {
            wire_json(path, sizeof path, r->path);
            snprintf(source, sizeof source, "{\"file\":{\"path\":\"%s\",\"offset\":%" PRIu64 "}}", path, r->offset);
        } else {
            snprintf(source, sizeof source, "\"%s\"", stack ? "stack" : "anonymous");
        }
        wire_event(v, "{\"map\":{\"addr\":%" PRIu64 ",\"len\":%" PRIu64 ",\"prot\":%u,\"source\":%s,\"site\":0}}", addr, len,
                   r->prot, source);
    }
    free(r);
    if (maps)
        fclose(maps);
}
