/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hold PID FILE SYMBOL SECONDS [other]: holds the first thread of the process that calls the function; all others go on.
 * "other": never holds the main thread. FILE is the program, or its shared object, that has the symbol.
 *
 * Prints "ready" when it watches and "held TID" when it holds a thread. Lets it go at a line on standard input, or at the
 * input's end, and leaves nothing behind in the process. Status 3: no thread came within SECONDS.
 *
 * It works by ptrace and a breakpoint, so the program under test is the shipped one. x86-64 only (status 77 elsewhere).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common.h"

#ifndef __x86_64__
int main(void)
{
	return 77;
}
#else
#define BREAKPOINT  0xcc
#define THREADS_MAX 512
#define POLL_MS     2
#define QUIET_LOOKS 16

static pid_t process, held;
static uint64_t place;                 /* address of the breakpoint */
static uint8_t former;                 /* the octet that the breakpoint replaces */
static bool planted;
static pid_t thread[THREADS_MAX];      /* the traced threads */
static unsigned threads;

/* -- where the function is ------------------------------------------------------------------------------------- */
static uint64_t symbol_value(const char *file, const char *name)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	const Elf64_Shdr *section;
	const uint8_t *image;
	const Elf64_Ehdr *head;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		die(file, strerror(errno));
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (image == MAP_FAILED)
		die(file, strerror(errno));
	close(fd);
	head = (const Elf64_Ehdr *)image;
	section = (const Elf64_Shdr *)(image + head->e_shoff);
	for (unsigned i = 0; i < head->e_shnum; i++) {
		const Elf64_Sym *symbol = (const Elf64_Sym *)(image + section[i].sh_offset);
		const char *names = (const char *)image + section[section[i].sh_link].sh_offset;

		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		for (size_t n = 0; n < section[i].sh_size / sizeof(*symbol); n++)
			if (ELF64_ST_TYPE(symbol[n].st_info) == STT_FUNC && !strcmp(names + symbol[n].st_name, name))
				return symbol[n].st_value;
	}
	die(name, "no such function in the file's table of symbols");
	return 0;
}

/* Address at which the process has mapped the file's beginning. */
static uint64_t base_of(const char *file)
{
	char path[64], line[PATH_MAX + 128], mapped[PATH_MAX], real[PATH_MAX];
	unsigned long start, offset;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)process);
	f = fopen(path, "re");
	if (!f || !realpath(file, real))
		die(f ? file : path, strerror(errno));
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%*x %*s %lx %*s %*s %4095s", &start, &offset, mapped) == 3 && offset == 0 &&
		    !strcmp(mapped, real)) {
			fclose(f);
			return start;
		}
	die(file, "the process has not mapped it");
	return 0;
}

/* -- the breakpoint ----------------------------------------------------------------------------------------------- */
static void access_octet(uint8_t *octet, bool write)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)process);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || (write ? pwrite(fd, octet, 1, (off_t)place) : pread(fd, octet, 1, (off_t)place)) != 1)
		die("the process's memory", strerror(errno));
	close(fd);
}

static void plant(void)
{
	uint8_t octet = BREAKPOINT;

	access_octet(&octet, true);
	planted = true;
}

static void remove_breakpoint(void)
{
	if (planted)
		access_octet(&former, true);
	planted = false;
}

/* True when the thread has just hit the breakpoint; sets its instruction pointer back to the breakpoint. */
static bool has_hit(pid_t tid)
{
	struct user_regs_struct regs;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) || regs.rip != place + 1)
		return false;
	regs.rip = place;
	return ptrace(PTRACE_SETREGS, tid, NULL, &regs) == 0;
}

static void go_on(pid_t tid, int with)
{
	ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)with);
}

/* Steps the thread over the breakpoint. Another thread may pass meanwhile and is not held. A signal that comes instead of the
 * step's trap goes to the thread with the next step, which may lead into its handler: then the thread hits the breakpoint
 * again when the handler returns. */
static void step_over(pid_t tid)
{
	int status, with = 0;

	remove_breakpoint();
	while (ptrace(PTRACE_SINGLESTEP, tid, NULL, (void *)(intptr_t)with) == 0 && waitpid(tid, &status, __WALL) == tid &&
	       WIFSTOPPED(status) && status >> 8 != SIGTRAP)
		with = status >> 16 ? 0 : WSTOPSIG(status);
	plant();
	go_on(tid, 0);
}

/* -- threads --------------------------------------------------------------------------------------------------------- */
static bool is_traced(pid_t tid)
{
	for (unsigned i = 0; i < threads; i++)
		if (thread[i] == tid)
			return true;
	return false;
}

/* Adds a thread once: /proc's list of threads or its first stop may show it first. */
static void add_thread(pid_t tid)
{
	if (is_traced(tid))
		return;
	if (threads == THREADS_MAX) {
		remove_breakpoint();
		die("the process", "has more threads than can be held");
	}
	thread[threads++] = tid;
}

static void forget_thread(pid_t tid)
{
	for (unsigned i = 0; i < threads; i++)
		if (thread[i] == tid)
			thread[i--] = thread[--threads];
}

static void seize_thread(pid_t tid)
{
	if (is_traced(tid))
		return;
	/* EPERM after the first: a thread that a traced one starts is traced already */
	if (ptrace(PTRACE_SEIZE, tid, NULL, (void *)PTRACE_O_TRACECLONE) && !(errno == EPERM && threads)) {
		if (errno == ESRCH)
			return;        /* it has ended */
		die("ptrace", strerror(errno));
	}
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	add_thread(tid);
}

/* True when the thread is stopped or has ended. */
static bool stands_still(pid_t tid)
{
	char path[64], state = 'Z';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)process, (int)tid);
	f = fopen(path, "re");
	if (!f)
		return true;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'Z';
	fclose(f);
	return state == 't' || state == 'Z' || state == 'X';
}

static void look_for_threads(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;

	if (!d)
		die(path, strerror(errno));
	while ((e = readdir(d)))
		if (atoi(e->d_name) > 0)
			seize_thread((pid_t)atoi(e->d_name));
	closedir(d);
}

/* Waits until all threads are stopped and several looks at the list in a row have found no new one. A thread that was about to
 * start another when it was seized leaves an untraced one, which the list shows after the first has stopped; and the list may
 * miss a thread while others start and end. The threads go on when their stops are handled. */
static void seize(int64_t until)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)process);
	for (unsigned quiet = 0; quiet < QUIET_LOOKS; quiet++) {
		unsigned before = threads;

		look_for_threads(path);
		if (threads != before)
			quiet = 0;
		for (unsigned i = 0; i < threads; i++)
			while (!stands_still(thread[i])) {
				if (now() >= until)
					die("the process", "has a thread that does not stop");
				quiet = 0;
				poll(NULL, 0, 1);
			}
	}
}

static void on_trap(pid_t tid, bool other)
{
	if (!has_hit(tid)) {
		go_on(tid, SIGTRAP);
	} else if (held || !planted) {
		go_on(tid, 0);
	} else if (other && tid == process) {
		step_over(tid);
	} else {
		remove_breakpoint();
		held = tid;
		printf("held %d\n", (int)tid);
		fflush(stdout);
	}
}

/* Handles one stop of a thread; false when there is none. */
static bool handle_stop(bool other)
{
	int status;
	pid_t tid = waitpid(-1, &status, __WALL | WNOHANG);

	if (tid < 0)
		die("the process", "has ended");
	if (tid == 0)
		return false;
	if (!WIFSTOPPED(status)) {
		forget_thread(tid);
		return true;
	}
	add_thread(tid);
	if (status >> 16 == PTRACE_EVENT_CLONE || status >> 16 == PTRACE_EVENT_STOP) {
		go_on(tid, 0);
	} else if (WSTOPSIG(status) == SIGTRAP) {
		on_trap(tid, other);
	} else {
		go_on(tid, WSTOPSIG(status));
	}
	return true;
}

/* The breakpoint's trap may still come: ptrace reports a requested stop first. */
static bool has_trap_ahead(pid_t tid, int status)
{
	struct user_regs_struct regs;

	return !(status >> 16 == 0 && WSTOPSIG(status) == SIGTRAP) && ptrace(PTRACE_GETREGS, tid, NULL, &regs) == 0 &&
	       regs.rip == place + 1;
}

/* Detaches from a thread after the breakpoint is removed. Passes on its pending signal, unless it is the breakpoint's. */
static void detach(pid_t tid)
{
	int status, with = 0;

	if (tid != held) {
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
			return;        /* it has ended */
		do {
			if (waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
				return;
		} while (has_trap_ahead(tid, status) && ptrace(PTRACE_CONT, tid, NULL, NULL) == 0);
		if (status >> 16 == 0 && !(WSTOPSIG(status) == SIGTRAP && has_hit(tid)))
			with = WSTOPSIG(status);
	}
	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)with);
}

static void let_all_go(void)
{
	remove_breakpoint();
	for (unsigned i = 0; i < threads; i++)
		detach(thread[i]);
}

/* True until standard input has a line, or ends. */
static bool go_on_holding(int64_t until)
{
	struct pollfd f = { .fd = STDIN_FILENO, .events = POLLIN };

	return poll(&f, 1, POLL_MS) == 0 && (held || now() < until);
}

int main(int argc, char **argv)
{
	bool other = argc == 6 && !strcmp(argv[5], "other");
	int64_t until;

	if (argc != 5 && !other)
		die("usage", "hold PID FILE SYMBOL SECONDS [other]");
	process = (pid_t)atoi(argv[1]);
	until = now() + atoi(argv[4]) * NS;
	place = base_of(argv[2]) + symbol_value(argv[2], argv[3]);
	access_octet(&former, false);
	seize(until);
	plant();
	puts("ready");
	fflush(stdout);
	do {
		while (handle_stop(other))
			;
	} while (go_on_holding(until));
	let_all_go();
	return held ? 0 : 3;
}
#endif
