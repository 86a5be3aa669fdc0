/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * A key that only `sign` can read, in a program whose other parts may read anything else: a stray read of it ends in SIGSEGV, which is told.
 *
 *     gcc -O2 -I crates/runtime/include crates/runtime/examples/domains.c -L target/release -llookaside_runtime -o domains
 *     LD_LIBRARY_PATH=target/release ./domains
 *
 * Exit code 2, and a line: there are no protection keys here.
 */
#define _DEFAULT_SOURCE /* sigaction */

#include "domains.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static domain_id vault, signer;
static uint64_t *key;     /* in the vault */
static uint64_t *counter; /* the signer's own */

/* Domains: the signer may read the vault. Nobody else may read either. */
static int open_vault(void)
{
    vault = domain_create(4096);
    signer = domain_create(4096);
    if (!vault || !signer)
        return -1;
    key = domain_memory(vault, NULL);
    counter = domain_memory(signer, NULL);
    if (domain_enter(vault))
        return -1;
    *key = UINT64_C(0x9e3779b97f4a7c15);
    if (domain_leave(vault))
        return -1;
    return domain_share(vault, signer, DOMAIN_READ);
}

static int sign(uint64_t message, uint64_t *signature)
{
    if (domain_enter(signer))
        return -1;
    *signature = (message + ++*counter) * *key;
    return domain_leave(signer);
}

static void told(int number, siginfo_t *info, void *context)
{
    const char *line = domain_fault(info->si_code, info->si_addr) == vault ? "a stray read of the vault\n" : "a fault\n";

    (void)context;
    if (write(1, line, strlen(line)) < 0)
        _exit(1);
    signal(number, SIG_DFL); /* the access is tried again, and ends the program */
}

int main(void)
{
    struct sigaction action = { .sa_sigaction = told, .sa_flags = SA_SIGINFO };
    uint64_t signature = 0;

    if (open_vault() || sign(42, &signature)) {
        fprintf(stderr, "%s\n", domain_error());
        return 2;
    }
    printf("signature %016llx\n", (unsigned long long)signature);
    fflush(stdout);
    sigaction(SIGSEGV, &action, NULL);
    return (int)*(volatile uint64_t *)key;
}
