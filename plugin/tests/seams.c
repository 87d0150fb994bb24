/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/seams.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEPS_PER_MS 20

enum seam_mode { OPEN, HELD };

struct seam_table *seams;
static __thread enum seam_party me;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "seams: %s: %s\n", what, strerror(errno));
	abort();
}

static void map(int fd)
{
	seams = mmap(NULL, sizeof(*seams), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	must(seams != MAP_FAILED, "mmap");
}

void seams_share(void)
{
	int fd = memfd_create("seams", 0);
	char text[16];

	must(fd >= 0 && ftruncate(fd, sizeof(*seams)) == 0, "memfd");
	map(fd);
	snprintf(text, sizeof(text), "%d", fd);
	must(setenv(SEAMS_ENV, text, 1) == 0, "setenv");
}

/* A daemon that a test has started; any other program has no table. */
static void __attribute__((constructor)) join(void)
{
	const char *text = getenv(SEAMS_ENV);

	if (text)
		map(atoi(text));
}

static void wait_released(enum seam_party who)
{
	while (atomic_load(&seams->party[who].held))
		syscall(SYS_futex, &seams->party[who].held, FUTEX_WAIT, 1, NULL, NULL, 0);
}

/* Whether the point is one of the list's words. */
static bool is_listed(const char *list, const char *point)
{
	size_t len = strlen(point);

	for (const char *at = list; (at = strstr(at, point)); at += len)
		if ((at == list || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
			return true;
	return false;
}

/* A test may be writing another list meanwhile; without a lock, for a party may be killed anywhere. */
static bool is_to_be_held(enum seam_party who, const char *point)
{
	char list[SEAM_LIST];

	if (atomic_load(&seams->party[who].mode) != HELD)
		return false;
	for (size_t i = 0; i < SEAM_LIST; i++)
		list[i] = atomic_load_explicit(&seams->party[who].only[i], memory_order_relaxed);
	list[SEAM_LIST - 1] = '\0';
	return is_listed(list, point);
}

void seam(enum seam_party otherwise, const char *point)
{
	enum seam_party who = me == SEAM_NOBODY ? otherwise : me;

	if (!seams || who == SEAM_NOBODY)
		return;
	atomic_store(&seams->party[who].pid, getpid());
	atomic_store(&seams->party[who].tid, gettid());
	if (!is_to_be_held(who, point))
		return;
	snprintf(seams->party[who].at, SEAM_NAME, "%s", point);
	atomic_fetch_add(&seams->party[who].visits, 1);
	atomic_store(&seams->party[who].held, 1);
	if (!is_to_be_held(who, point))        /* it was opened meanwhile */
		atomic_store(&seams->party[who].held, 0);
	wait_released(who);
}

void seam_hold(enum seam_party who, const char *points)
{
	must(strlen(points) < SEAM_LIST, "a list of points");
	atomic_store(&seams->party[who].mode, OPEN);
	for (size_t i = 0; i <= strlen(points); i++)
		atomic_store_explicit(&seams->party[who].only[i], points[i], memory_order_relaxed);
	atomic_store(&seams->party[who].mode, HELD);
}

void seam_go(enum seam_party who)
{
	atomic_store(&seams->party[who].held, 0);
	syscall(SYS_futex, &seams->party[who].held, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void seam_open(enum seam_party who)
{
	atomic_store(&seams->party[who].mode, OPEN);
	seam_go(who);
}

void seams_open(void)
{
	for (unsigned i = 0; i < SEAM_PARTIES; i++)
		seam_open((enum seam_party)i);
}

bool seam_is_held(enum seam_party who, const char *point)
{
	return atomic_load(&seams->party[who].held) && !strcmp(seams->party[who].at, point);
}

bool seam_wait(enum seam_party who, const char *point, bool (*unless)(void *arg), void *arg)
{
	for (int left = SEAM_LIMIT_MS * STEPS_PER_MS; left > 0; left--) {
		if (seam_is_held(who, point))
			return true;
		if (unless && unless(arg))
			return false;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 / STEPS_PER_MS }, NULL);
	}
	fprintf(stderr, "nobody came to \"%s\" within %u ms\n", point, SEAM_LIMIT_MS);
	return false;
}

struct start {
	enum seam_party who;
	void *(*run)(void *arg);
	void *arg;
};

static void *begin(void *arg)
{
	struct start s = *(struct start *)arg;

	free(arg);
	me = s.who;
	seam(me, "begin");
	return s.run(s.arg);
}

pthread_t seam_thread(enum seam_party who, void *(*run)(void *), void *arg)
{
	struct start *s = malloc(sizeof(*s));
	pthread_t thread;

	must(s != NULL, "memory");
	*s = (struct start){ .who = who, .run = run, .arg = arg };
	must(pthread_create(&thread, NULL, begin, s) == 0, "pthread_create");
	if (is_to_be_held(who, "begin"))
		must(seam_wait(who, "begin", NULL, NULL), "a thread to begin");
	return thread;
}

/* The letter of its state in proc(5), or 0: it has ended. */
static char state_of(int pid, int tid)
{
	char path[64], text[512], *end = NULL;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	if (n > 0) {
		text[n] = '\0';
		end = strrchr(text, ')');
	}
	return end && end[1] ? end[2] : 0;
}

bool seam_is_quiet(enum seam_party who)
{
	int tid = atomic_load(&seams->party[who].tid);
	char state;

	if (atomic_load(&seams->party[who].held) || !tid)
		return true;
	state = state_of(atomic_load(&seams->party[who].pid), tid);
	return !state || strchr("SDZX", state);
}
