/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What every query of a resolver calls takes no lock, allocates nothing and makes no system call. The calls run in a
 * process that the kernel kills at its first system call but write() and exit() (seccomp's strict mode), with malloc()
 * and its kin and the locks of pthreads replaced by functions that end it.
 */
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "plugin/internal.h"

#define CALLS    2000000U
#define NAMES    300000U
#define CAPACITY 20000U
#define LIFE_S   60
#define NAME_LEN 15

static bool forbidden;

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void __libc_free(void *p);

/* Where system calls are forbidden, too, this is a kill; exit_group is not among those allowed, exit is. */
static void permitted(void)
{
	if (forbidden)
		syscall(SYS_exit, 1);
}

void *malloc(size_t size)
{
	permitted();
	return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	permitted();
	return __libc_calloc(count, size);
}

void *realloc(void *p, size_t size)
{
	permitted();
	return __libc_realloc(p, size);
}

void free(void *p)
{
	permitted();
	__libc_free(p);
}

/* This program has one thread: nothing needs a lock. */
int pthread_mutex_lock(pthread_mutex_t *m)
{
	(void)m;
	permitted();
	return 0;
}

int pthread_rwlock_rdlock(pthread_rwlock_t *l)
{
	(void)l;
	permitted();
	return 0;
}

int pthread_rwlock_wrlock(pthread_rwlock_t *l)
{
	(void)l;
	permitted();
	return 0;
}

static uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

static void query(struct hydns_thread *t, uint32_t id, uint64_t now_ms)
{
	uint8_t name[NAME_LEN] = "\10........\4test";
	const struct hydns_question q = { .name = name, .name_len = NAME_LEN, .qtype = 1 };
	time_t now = (time_t)(now_ms / 1000), ends = now + (time_t)(id % LIFE_S) + 1;

	for (int i = 0; i < 8; i++)
		name[1 + i] = (uint8_t)('a' + (id >> (4 * i) & 15));
	hydns_plugin_sample(t, now);
	hydns_plugin_hot(t, hydns_plugin_prefetch(t, &q), false, ends, now_ms);
	hydns_plugin_refresh_due(t, &q, ends, LIFE_S, now);
}

/* Hot names and cold ones, through many halvings of the sketch. */
static void queries(struct hydns_plugin *p)
{
	struct hydns_thread *t = hydns_plugin_thread(p, 0);
	uint64_t state = 1;

	for (uint32_t i = 0; i < CALLS; i++) {
		uint32_t id = next_random(&state) % NAMES;

		t->ring.ring->threshold = i / 1000 % 3 * 1000000;
		query(t, i & 1 ? id : id % 64, 1000000 + i / 10);
	}
}

static int child(struct hydns_plugin *p, bool (*mischief)(void))
{
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	forbidden = true;
	if (mischief)
		mischief();
	else
		queries(p);
	syscall(SYS_exit, 0);
	return 1;
}

/* How a child ended: 0 well, else not. */
static int outcome(struct hydns_plugin *p, bool (*mischief)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(child(p, mischief));
	return pid < 0 || waitpid(pid, &status, 0) < 0 ? -1 : status;
}

static bool allocates(void)
{
	void *volatile p = malloc(1);

	return p;
}

static bool locks(void)
{
	static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;

	return pthread_mutex_lock(&m);
}

static bool enters_the_kernel(void)
{
	return getppid();
}

int main(void)
{
	static const struct { const char *what; bool (*mischief)(void); } watched[] = {
		{ "an allocation", allocates }, { "a lock", locks }, { "a system call", enters_the_kernel },
	};
	const struct hydns_plugin_options o = { .socket = "/nonexistent", .identity = "test", .version = "1",
		.threads = 1, .admission = 1, .window_ms = 600000, .max_ttl = 3600, .capacity = CAPACITY,
		.refresh_percent = 10 };
	struct hydns_plugin *p = hydns_plugin_new(&o);
	int bad = 0;

	if (!p)
		return 1;
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		if (outcome(p, watched[i].mischief) == 0) {
			fprintf(stderr, "%s goes unnoticed\n", watched[i].what);
			bad = 1;
		}
	if (outcome(p, NULL) != 0) {
		fprintf(stderr, "a query allocates, locks or enters the kernel\n");
		bad = 1;
	}
	hydns_plugin_stop(p);
	return bad;
}
