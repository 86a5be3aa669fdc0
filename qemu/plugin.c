/* SPDX-License-Identifier: GPL-2.0-or-later
 *
 * Lookaside's recorder for QEMU's user mode: every load, store and, if asked for, instruction fetch of the program, and its
 * changes of the memory map, written into a pipe.
 *
 * Options (name=value): pipe (descriptor), unit (byte, line, page), classes (log2), apart, unified, fetches (0 or 1). */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "qemu_api.h"
#include "recorder.h"

QEMU_PLUGIN_EXPORT int qemu_plugin_version = 1;

struct options options;
struct vcpu *vcpus[MOST_VCPUS];
uint64_t serial_instructions;
bool threads, begun;
uint64_t guest_base;
int exit_code = -1;
static bool guest_base_known;

/* Userdata of a fetch: address in bits 0-47, instructions in 48-57, size of the first in 58-63. */
static void *pack(uint64_t addr, uint64_t count, uint64_t size)
{
    return (void *)(uintptr_t)((addr & ADDR_MASK) | count << 48 | (size < 63 ? size : 63) << 58);
}

/* Fetches before the first data access: that one tells where the stack is, and the memory map has to come before them all. */
enum { MOST_HELD = 256 };
static void *held[MOST_HELD];
static int n_held;

static void fetch(struct vcpu *v, void *userdata)
{
    uint64_t packed = (uint64_t)(uintptr_t)userdata, addr = packed & ADDR_MASK;
    uint32_t count = packed >> 48 & 0x3ff;
    wire_access(v, FETCH, addr, (unsigned)(packed >> 58), addr);
    if (count > 1)
        wire_more(v, FETCH, addr, count - 1);
}

static void release(struct vcpu *v, uint64_t data_addr)
{
    int n = n_held;
    n_held = 0;
    wire_begin(v, data_addr);
    for (int i = 0; i < n; i++)
        fetch(v, held[i]);
}

static void on_fetch(unsigned vcpu, void *userdata)
{
    struct vcpu *v = vcpus[vcpu];
    if (!begun && n_held < MOST_HELD) {
        held[n_held++] = userdata;
        return;
    }
    if (n_held)
        release(v, 0);
    fetch(v, userdata);
}

static void on_instructions(unsigned vcpu, void *userdata)
{
    vcpus[vcpu]->instructions += (uint64_t)(uintptr_t)userdata;
}

static void on_memory(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t addr, void *userdata)
{
    struct vcpu *v = vcpus[vcpu];
    unsigned size = 1u << qemu_plugin_mem_size_shift(info);
    if (n_held)
        release(v, addr);
    /* An atomic read-modify-write comes as one call where there are threads, as two where there is one. The interface has no
     * question for "both"; QEMU 5 to 8 keep the two direction bits above bit 16. */
    if (info >> 16 == QEMU_PLUGIN_MEM_RW) {
        wire_access(v, LOAD, addr, size, (uint64_t)(uintptr_t)userdata);
        wire_access(v, STORE, addr, size, (uint64_t)(uintptr_t)userdata);
        return;
    }
    wire_access(v, qemu_plugin_mem_is_store(info) ? STORE : LOAD, addr, size, (uint64_t)(uintptr_t)userdata);
}

/* Fetches of a block: one call a page where only pages count and nothing else shares their filter, else one an instruction. */
static void translate_fetches(struct qemu_plugin_tb *tb, size_t n)
{
    bool by_page = options.filtered && options.unit_log2 == 12 && options.table[FETCH] != options.table[LOAD];
    for (size_t i = 0; i < n;) {
        struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, i);
        uint64_t addr = qemu_plugin_insn_vaddr(first), count = 1;
        while (by_page && i + count < n && count < 0x3ff
               && qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i + count)) >> 12 == addr >> 12)
            count++;
        qemu_plugin_register_vcpu_insn_exec_cb(first, on_fetch, QEMU_PLUGIN_CB_NO_REGS,
                                               pack(addr, count, qemu_plugin_insn_size(first)));
        i += count;
    }
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    (void)id;
    /* The inline addition is not atomic. QEMU translates everything anew when a second thread begins. */
    if (threads)
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_instructions, QEMU_PLUGIN_CB_NO_REGS, (void *)(uintptr_t)n);
    else
        qemu_plugin_register_vcpu_tb_exec_inline(tb, QEMU_PLUGIN_INLINE_ADD_U64, &serial_instructions, n);
    if (options.fetches)
        translate_fetches(tb, n);
    for (size_t i = 0; i < n; i++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint64_t addr = qemu_plugin_insn_vaddr(insn);
        if (!guest_base_known) {
            guest_base_known = true;
            guest_base = (uint64_t)(uintptr_t)qemu_plugin_insn_haddr(insn) - addr;
        }
        qemu_plugin_register_vcpu_mem_cb(insn, on_memory, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW,
                                         (void *)(uintptr_t)addr);
    }
}

/* Called by the thread that makes the new one. */
static void on_vcpu_begin(qemu_plugin_id_t id, unsigned vcpu)
{
    (void)id;
    if (vcpu >= MOST_VCPUS) {
        fprintf(stderr, "lookaside: qemu: more than %d threads at once can't be recorded\n", MOST_VCPUS);
        exit(1);
    }
    struct vcpu *v = vcpus[vcpu];
    if (!v) {
        v = calloc(1, sizeof *v);
        if (v && options.filtered) {
            v->slots = calloc(3u << options.classes_log2, sizeof *v->slots);
            for (unsigned i = 0; v->slots && i < 3u << options.classes_log2; i++)
                v->slots[i].unit = NO_UNIT;
        }
        if (!v || (options.filtered && !v->slots)) {
            fprintf(stderr, "lookaside: qemu: no memory for thread %u\n", vcpu);
            exit(1);
        }
        v->frame = NO_FRAME;
        vcpus[vcpu] = v;
    }
}

static void on_vcpu_end(qemu_plugin_id_t id, unsigned vcpu)
{
    struct vcpu *v = vcpus[vcpu];
    (void)id;
    if (!v || v->thread == 0)
        return;
    wire_drain(v, true);
    wire_event(v, "{\"thread-exit\":{\"thread\":%u}}", v->thread);
    wire_drain(v, false);
    wire_gone(v);
}

static void on_call(qemu_plugin_id_t id, unsigned vcpu, int64_t num, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                    uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8)
{
    const uint64_t args[6] = {a1, a2, a3, a4, a5, a6};
    (void)id, (void)a7, (void)a8;
    if (n_held)
        release(vcpus[vcpu], 0);
    calls_enter(vcpus[vcpu], num, args);
}

static void on_return(qemu_plugin_id_t id, unsigned vcpu, int64_t num, int64_t result)
{
    (void)id;
    calls_leave(vcpus[vcpu], num, result);
}

/* The process's last words, by one of its threads. */
static void last_words(struct vcpu *v, int code)
{
    wire_drain(v, true);
    wire_totals(v);
    if (code >= 0)
        wire_event(v, "{\"process-exit\":{\"code\":%d}}", code);
    wire_end(v);
}

/* No thread runs translated code any more. */
static void on_exit_process(qemu_plugin_id_t id, void *userdata)
{
    struct vcpu *last = vcpus[0];
    (void)id, (void)userdata;
    for (int i = 0; i < MOST_VCPUS && vcpus[i]; i++) {
        if (vcpus[i]->thread == 0)
            continue;
        wire_drain(vcpus[i], true);
        last = vcpus[i];
    }
    if (last)
        last_words(last, exit_code);
}

/* QEMU ends a program by a signal by sending it to itself, without calling its plugins. Preloaded, this comes before that.
 * Other threads still run then: what they have not written yet is lost, but for their counts. */
QEMU_PLUGIN_EXPORT int kill(pid_t pid, int sig)
{
    uint32_t self = (uint32_t)syscall(SYS_gettid);
    for (int i = 0; pid == getpid() && sig != 0 && i < MOST_VCPUS && vcpus[i]; i++)
        if (vcpus[i]->thread == self) {
            last_words(vcpus[i], 128 + sig);
            break;
        }
    return (int)syscall(SYS_kill, pid, sig);
}

static const char *option(int argc, char **argv, const char *name)
{
    size_t n = strlen(name);
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], name, n) == 0 && argv[i][n] == '=')
            return argv[i] + n + 1;
    return "";
}

QEMU_PLUGIN_EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    const char *unit = option(argc, argv, "unit");
    bool unified = atoi(option(argc, argv, "unified")), apart = atoi(option(argc, argv, "apart"));
    if (info->system_emulation || *option(argc, argv, "pipe") == 0) {
        fprintf(stderr, "lookaside: this plugin is for QEMU's user mode, with pipe=DESCRIPTOR\n");
        return 1;
    }
    options.filtered = strcmp(unit, "byte") != 0;
    options.unit_log2 = strcmp(unit, "line") == 0 ? 6 : 12;
    options.classes_log2 = (unsigned)atoi(option(argc, argv, "classes")) & 15;
    options.fetches = atoi(option(argc, argv, "fetches"));
    options.table[STORE] = apart && !unified ? 1 : 0;
    options.table[FETCH] = unified ? 0 : 2;
    options.wide = strstr(info->target_name, "64") != NULL;
    maps_before();
    wire_open(atoi(option(argc, argv, "pipe")));
    calls_init(info->target_name);
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_begin);
    qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_end);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_call);
    qemu_plugin_register_vcpu_syscall_ret_cb(id, on_return);
    qemu_plugin_register_atexit_cb(id, on_exit_process, NULL);
    return 0;
}
