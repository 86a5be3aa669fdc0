/* SPDX-License-Identifier: GPL-2.0 */
/* The tests that run in a virtual machine, in one program: its first process. */
#ifndef TAP_H
#define TAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "../lookaside.h"

#define PAGE	4096UL
#define HUGE	(512 * PAGE)

/* One line of the result: printf-like, what holds or does not. */
bool ok(bool holds, const char *what, ...)
	__attribute__((format(printf, 2, 3)));
/* Whether two numbers are the same; both are told if not. */
bool same(uint64_t is, uint64_t should, const char *what);
/* A line about what happens, or does not. */
void note(const char *what, ...) __attribute__((format(printf, 1, 2)));

/* The last line: how many there were. */
void plan(void);
/* What the kernel complained about; what makes it stop is seen from outside. */
void kernel_log(void);
/* How often the kernel's log has these words. */
unsigned int logged(const char *what);
/* What it has until now is looked at no more. */
void forget_log(void);
/* Loads the module: 0, or -1 and errno. */
int load(const char *parameters);

/* /dev/lookaside. */
extern int device;

/* A walk of the caller's own tables: 0 or errno. */
int walk_own(struct lookaside_walk *walk, const void *start, size_t len);
/* The same, of the arguments as they are. */
int walk_as_is(struct lookaside_walk *walk);
/* Arguments of a walk of the caller's own tables. */
struct lookaside_walk arguments(const void *start, size_t len);

/* A walk that takes a while: so many NOPs that the steps are used up by them. */
struct lookaside_walk long_walk(const void *start, size_t len);

/* walk.c */
void counts(void);
void holes(void);
void huge_pages(void);
void going_on(void);
void levels(int expected);
/* mappings.c */
void any_layout(void);
void nothing_faulted_in(void);
void other_mappings(void);
void old_programs(void);
/* refused.c */
void wrong_arguments(void);
void any_arguments(void);
/* process.c */
/* So many bytes in small pages, each written to; at a multiple of HUGE. */
char *small_pages(size_t len);
/* The same, not written to. */
char *reserve(size_t len);
/* The calling process is that user's from now on; whether who may debug it may look at it. */
void become(uid_t user, bool dumpable);
/* The same, dumpable, with CAP_SYS_NICE alone. */
void become_nice(uid_t user);
/* A process of that user with @len bytes of small pages at *@at, which the caller has not. */
pid_t holder(uid_t user, bool dumpable, size_t len, char **at);
/* Ends it. */
void end(pid_t pid);
/* Its pagemap: -1 and errno where the kernel refuses. */
int open_pagemap(pid_t pid);
/* program.c */
/* What the last one said that was run. */
extern char said[];
/* Runs it as that user, keeps what it says; gives its exit code, or the signal that ended it, negative. */
int run(uid_t user, char *const command[]);
/* The first number of that name in what was said. */
unsigned long long number(const char *name);
/* One more line of the result; says what was said, if it was not what it should be. */
void expect(bool holds, const char *what);
/* others.c */
void other_processes(void);
void other_users(void);
void ending_processes(void);
void nothing_kept(void);
/* churn.c */
void signals(void);
void waiting_writers(void);
void terms_of_the_lock(void);
void churn(unsigned int seconds);
/* baker.c */
void baker(void);
void baker_without_module(void);
/* keys.c */
void compartments(void);

#endif
