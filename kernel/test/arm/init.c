// SPDX-License-Identifier: GPL-2.0
/*
 * First process of the virtual machines with a Cortex-A9 and an A7: TLB
 * lockdown and TLB migration, first with the processor's registers, which QEMU
 * has but does not heed, then with what would be written to them written down,
 * and what would be read from them supplied.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arm.h"

int device = -1;

size_t recorded_in(const char *path, struct event *events)
{
	FILE *file = fopen(path, "re");
	size_t count = 0;

	while (file && count < EVENTS &&
	       fscanf(file, "%u %15s %x", &events[count].core, events[count].what, &events[count].value) == 3)
		count++;
	if (file)
		fclose(file);
	return count;
}

size_t recorded(struct event *events)
{
	return recorded_in(LOCKDOWN, events);
}

bool write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY | O_CLOEXEC);
	bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);

	close(file);
	return done;
}

static void nothing(int number)
{
	(void)number;
}

void signal_in(unsigned int usecs)
{
	const struct itimerval once = { .it_value.tv_usec = usecs };

	signal(SIGALRM, nothing);
	setitimer(ITIMER_REAL, &once, NULL);
}

static int call(unsigned long number, int pagemap, const void *page, struct lookaside_lock *answer)
{
	struct lookaside_lock unused;

	answer = answer ? answer : &unused;
	*answer = (struct lookaside_lock) {
		.version = LOOKASIDE_VERSION,
		.pagemap = pagemap,
		.addr = (uintptr_t)page,
	};
	return ioctl(device, number, answer) ? errno : 0;
}

int lock(int pagemap, const void *page, struct lookaside_lock *answer)
{
	return call(LOOKASIDE_LOCK, pagemap, page, answer);
}

int unlock(int pagemap, const void *page, struct lookaside_lock *answer)
{
	return call(LOOKASIDE_UNLOCK, pagemap, page, answer);
}

int list(int pagemap, struct lookaside_locks *answer)
{
	*answer = (struct lookaside_locks) { .version = LOOKASIDE_VERSION, .pagemap = pagemap };
	return ioctl(device, LOOKASIDE_LOCKS, answer) ? errno : 0;
}

/* As many as the kernel allows, nearly: what changes all of them takes long. */
static void map_many(void)
{
	const size_t pages = 60000;
	char *at = reserve(pages * PAGE);
	size_t i;

	for (i = 0; i < pages; i += 2)
		mprotect(at + i * PAGE, PAGE, PROT_READ);
}

static void obey(int orders, int done, volatile char *page)
{
	char order;

	while (read(orders, &order, 1) == 1) {
		if (order == 't')
			(void)*page;
		else if (order == 'f' && !fork())
			_exit(0);
		else if (order == 'e')
			execl("/init", "/init", "wait", NULL);
		else if (order == 'm')
			map_many();
		if (write(done, &order, 1) != 1)
			break;
	}
	_exit(0);
}

struct puppet puppet(uid_t user)
{
	struct puppet new = { .page = reserve(PAGE) };
	int orders[2], done[2];

	if (pipe2(orders, O_CLOEXEC) || pipe2(done, O_CLOEXEC))
		return new;
	new.pid = fork();
	if (!new.pid) {
		close(orders[1]);
		close(done[0]);
		/* The module may go while it is there. */
		close(device);
		become(user, true);
		*new.page = 1;
		obey(orders[0], done[1], new.page);
	}
	close(orders[0]);
	close(done[1]);
	munmap(new.page, PAGE);
	new.orders = orders[1];
	new.done = done[0];
	/* Not before it has written there. */
	ok(tell(&new, 't'), "a process of user %u", user);
	new.pagemap = open_pagemap(new.pid);
	return new;
}

bool tell(const struct puppet *puppet, char order)
{
	char byte;

	return write(puppet->orders, &order, 1) == 1 && read(puppet->done, &byte, 1) == (order == 'e' ? 0 : 1);
}

void dismiss(struct puppet *puppet)
{
	end(puppet->pid);
	close(puppet->orders);
	close(puppet->done);
	close(puppet->pagemap);
}

static int as(void (*become_it)(uid_t user), uid_t user, int (*wish)(int pagemap, const struct puppet *puppet),
	      const struct puppet *puppet)
{
	int status, pagemap = -1;
	pid_t pid = fork();

	if (!pid) {
		become_it(user);
		if (puppet)
			pagemap = open_pagemap(puppet->pid);
		_exit(puppet && pagemap < 0 ? errno : wish(pagemap, puppet));
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 97;
}

static void become_plain(uid_t user)
{
	become(user, true);
}

int as_user(uid_t user, int (*wish)(int pagemap, const struct puppet *puppet), const struct puppet *puppet)
{
	return as(become_plain, user, wish, puppet);
}

int as_nice_user(uid_t user, int (*wish)(int pagemap, const struct puppet *puppet), const struct puppet *puppet)
{
	return as(become_nice, user, wish, puppet);
}

bool load_with(const char *parameters)
{
	if (!ok(!load(parameters), "the module can be loaded%s%s", *parameters ? " with " : "", parameters)) {
		note("%s", strerror(errno));
		return false;
	}
	device = open(LOOKASIDE_DEVICE, O_RDWR | O_CLOEXEC);
	return ok(device >= 0, LOOKASIDE_DEVICE " can be opened");
}

void unload(void)
{
	close(device);
	ok(!syscall(SYS_delete_module, "lookaside", O_NONBLOCK), "it can be unloaded");
}

/* The instructions themselves: that none is undefined, and that nothing is harmed. */
static void registers(unsigned int cores)
{
	char *pages = small_pages(4 * PAGE);
	struct lookaside_lock answer;
	unsigned int i, wrong = 0;

	for (i = 0; i < 4; i++)
		wrong += lock(-1, pages + i * PAGE, &answer) || answer.cores != cores;
	same(wrong, 0, "4 pages by way of the processor's register");
	same(answer.seen, 0, "QEMU has no entries that could be read back");
	same(lock(-1, small_pages(PAGE), NULL), ENOSPC, "a fifth is refused");
	memset(pages, 2, 4 * PAGE);
	for (i = 0; i < 4 * PAGE; i++)
		wrong += pages[i] != 2;
	same(wrong, 0, "the pages can be written and read");
	same(unlock(-1, pages, NULL), 0, "one is unlocked, the others are not");
	struct lookaside_walk walk = { .version = LOOKASIDE_VERSION, .pagemap = -1, .stride = 1, .len = PAGE };

	ok(ioctl(device, LOOKASIDE_WALK, &walk) && errno == EOPNOTSUPP, "walks are for 64 bits");

	static struct lookaside_tlb tlb;

	same(dump(0, &tlb), ENODEV, "the TLB cannot be read");
	same(migrate(LOOKASIDE_MIGRATE, -1, 0, 1, NULL), ENODEV, "nor anything taken along");
}

/* Once, of the module loaded without record=1. */
static void says_missing(const char *what)
{
	char line[256];

	snprintf(line, sizeof(line), "lookaside: not supported: walking (32 bits), %s\n", what);
	same(logged(line), 1, "it says what it cannot do here, in a line");
}

static int lock_its(const struct puppet *puppet)
{
	return lock(puppet->pagemap, puppet->page, NULL);
}

static int lock_own(void)
{
	static char *page;
	struct lookaside_locks locks;

	page = page ? page : small_pages(PAGE);
	/* Others may have been forked since. */
	*page = 1;
	return lock(-1, page, NULL) + list(-1, &locks) + unlock(-1, page, NULL);
}

static int watch_its(const struct puppet *puppet)
{
	return migrate(LOOKASIDE_MIGRATE, puppet->pagemap, puppet->pid, 1, NULL);
}

static int watch_own(void)
{
	return migrate(LOOKASIDE_MIGRATE, -1, 0, 1, NULL) + migrate(LOOKASIDE_STAY, -1, 0, 0, NULL);
}

static void cortex_a9(unsigned int cores)
{
	if (load_with("")) {
		says_missing("migration and TLB dumps (no Cortex-A7, or its secure world has the registers)");
		registers(cores);
		unload();
	}
	if (load_with("record=1")) {
		sequence(cores);
		refusals(cores);
		mapping_changes(cores);
		ends(cores);
		other_asid();
		churn_locks();
		amid_signals();
		waits(lock_its, lock_own, "a page of its own is locked and unlocked");
		leaving_core();
		kernel_log();
		missed_switches(cores);
		unload();
	}
}

static void cortex_a7(unsigned int cores)
{
	if (load_with("")) {
		says_missing("locking (no Cortex-A9, or its secure world has the register)");
		without_tlb(cores);
		unload();
	}
	if (load_with("record=1")) {
		dumps(cores);
		dump_refusals(cores);
		moves();
		watches();
		waits(watch_its, watch_own, "a thread of its own is watched, and not any more");
		unloading();
	}
}

/* The processor, as of its MIDR; 0: not known. */
static unsigned int part(void)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	unsigned int number = 0;
	char line[256];

	while (file && !number && fgets(line, sizeof(line), file))
		if (sscanf(line, "CPU part : %x", &number) != 1)
			number = 0;
	if (file)
		fclose(file);
	return number;
}

/* The serial line of i.MX6's board, or of QEMU's own. */
static const char *serial_line(void)
{
	return access("/dev/ttymxc1", W_OK) ? "/dev/ttyAMA0" : "/dev/ttymxc1";
}

int main(int argc, char **argv)
{
	unsigned int cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct utsname name;

	if (argc > 1 && !strcmp(argv[1], "wait"))
		return pause();

	mkdir("/proc", 0755), mkdir("/dev", 0755), mkdir("/sys", 0755), mkdir("/debug", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("dev", "/dev", "devtmpfs", 0, NULL);
	mount("sys", "/sys", "sysfs", 0, NULL);
	mount("debug", "/debug", "debugfs", 0, NULL);
	if (!freopen(serial_line(), "w", stdout))
		printf("Bail out! no serial line\n");
	setvbuf(stdout, NULL, _IOLBF, 0);
	uname(&name);
	note("Linux %s, %u cores", name.release, cores);

	if (part() == 0xc07)
		cortex_a7(cores);
	else
		cortex_a9(cores);
	kernel_log();
	plan();
	/* The machine cannot be switched off: whoever waits for the last line does it. */
	return pause();
}
