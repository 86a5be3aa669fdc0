/* SPDX-License-Identifier: MIT OR Apache-2.0
 *
 * The program executes another, or forbids itself system calls: what it has still to say comes before. These functions
 * pass on to the C library's, and give way to the program's own. If the other can't be executed the program goes on, and so
 * does its recording. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "recorder.h"

#define WEAK __attribute__((weak))

/* The C library's function, before which all is said. */
static void *next(const char *name)
{
	int error = errno;
	void *function = dlsym(RTLD_NEXT, name);

	recorder_last_words();
	errno = error;
	return function;
}

WEAK int execve(const char *path, char *const argv[], char *const envp[])
{
	return ((int (*)(const char *, char *const[], char *const[]))next("execve"))(path, argv, envp);
}

WEAK int execv(const char *path, char *const argv[])
{
	return ((int (*)(const char *, char *const[]))next("execv"))(path, argv);
}

WEAK int execvp(const char *file, char *const argv[])
{
	return ((int (*)(const char *, char *const[]))next("execvp"))(file, argv);
}

WEAK int execvpe(const char *file, char *const argv[], char *const envp[])
{
	return ((int (*)(const char *, char *const[], char *const[]))next("execvpe"))(file, argv, envp);
}

WEAK int fexecve(int file, char *const argv[], char *const envp[])
{
	return ((int (*)(int, char *const[], char *const[]))next("fexecve"))(file, argv, envp);
}

static size_t count(va_list list)
{
	size_t n = 1;

	while (va_arg(list, char *) != NULL)
		n++;
	return n;
}

/* The arguments of a call up to the NULL, that included. */
#define TAKE_ARGUMENTS(first)                                                            \
	va_list list, again;                                                             \
	va_start(list, first);                                                           \
	va_copy(again, list);                                                            \
	size_t n = count(again);                                                         \
	va_end(again);                                                                   \
	char *argv[n + 1];                                                               \
	argv[0] = (char *)(first);                                                       \
	for (size_t i = 1; i <= n; i++)                                                  \
		argv[i] = va_arg(list, char *)

WEAK int execl(const char *path, const char *first, ...)
{
	TAKE_ARGUMENTS(first);
	va_end(list);
	return execv(path, argv);
}

WEAK int execlp(const char *file, const char *first, ...)
{
	TAKE_ARGUMENTS(first);
	va_end(list);
	return execvp(file, argv);
}

WEAK int execle(const char *path, const char *first, ...)
{
	TAKE_ARGUMENTS(first);
	char *const *envp = va_arg(list, char *const *);

	va_end(list);
	return execve(path, argv, envp);
}

/* A filter of system calls need not allow ours: nothing is recorded from here on. */
WEAK int prctl(int what, ...)
{
	unsigned long more[4];
	va_list list;

	va_start(list, what);
	for (int i = 0; i < 4; i++)
		more[i] = va_arg(list, unsigned long);
	va_end(list);
	if (what == PR_SET_SECCOMP)
		recorder_end();
	return (int)syscall(SYS_prctl, what, more[0], more[1], more[2], more[3]);
}

#ifdef __x86_64__
WEAK long syscall(long number, ...)
{
	long more[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		more[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_seccomp)
		recorder_end();

	register long fourth __asm__("r10") = more[3];
	register long fifth __asm__("r8") = more[4];
	register long sixth __asm__("r9") = more[5];
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(more[0]), "S"(more[1]), "d"(more[2]), "r"(fourth), "r"(fifth), "r"(sixth)
			 : "rcx", "r11", "memory");
	if ((unsigned long)result > -4096UL) {
		errno = (int)-result;
		return -1;
	}
	return result;
}
#endif
