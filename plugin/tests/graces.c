/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "plugin/tests/graces.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct graces graces = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void begin_grace(void)
{
	struct timespec deadline;

	clock_gettime(CLOCK_REALTIME, &deadline);
	deadline.tv_sec += 10;
	pthread_mutex_lock(&graces.lock);
	graces.begun++;
	if (graces.page) {
		graces.epoch = __atomic_load_n(&graces.page->epoch, __ATOMIC_SEQ_CST);
		graces.heartbeat = __atomic_load_n(&graces.page->heartbeat_ns, __ATOMIC_SEQ_CST);
	}
	while (graces.held && !graces.given_up)
		graces.given_up = pthread_cond_timedwait(&graces.changed, &graces.lock, &deadline) != 0;
	pthread_mutex_unlock(&graces.lock);
}

/* In the place of libc's, for this program. */
long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	long a[6], result;
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_membarrier)
		begin_grace();
	result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	pthread_mutex_lock(&graces.lock);
	graces.ended += number == SYS_membarrier;
	pthread_mutex_unlock(&graces.lock);
	return result;
}

void watch_graces(const struct world *w, bool hold)
{
	pthread_mutex_lock(&graces.lock);
	graces.held = hold;
	graces.begun = graces.ended = 0;
	graces.given_up = false;
	graces.page = w->peer.page;
	pthread_mutex_unlock(&graces.lock);
}

void release_graces(void)
{
	pthread_mutex_lock(&graces.lock);
	graces.held = false;
	pthread_cond_broadcast(&graces.changed);
	pthread_mutex_unlock(&graces.lock);
}

unsigned graces_begun(void)
{
	unsigned n;

	pthread_mutex_lock(&graces.lock);
	n = graces.begun;
	pthread_mutex_unlock(&graces.lock);
	return n;
}

_Atomic unsigned times_gone, ended_when_gone;

void gone(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&graces.lock);
	ended_when_gone = graces.ended;
	pthread_mutex_unlock(&graces.lock);
	times_gone++;
}

int graces_setup(void **state)
{
	times_gone = ended_when_gone = 0;
	return world_setup(state);
}

int graces_teardown(void **state)
{
	release_graces();                      /* a failed test has not */
	graces.page = NULL;
	return world_teardown(state);
}
