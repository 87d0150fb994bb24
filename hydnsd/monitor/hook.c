/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "hydnsd/monitor/hook.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hydnsd/daemon/log.h"

#define PATH    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define LEAVE_S 1                      /* that the thread has at the end, after its program was killed */

/* What the thread uses. */
struct run {
	char *path;
	int most_ms, done;             /* done: eventfd */
	struct hydnsd_hook_event event;
	pid_t pid;                     /* the program, and its process group; 0: it does not run. By both threads, atomic. */
	int error;                     /* errno: it could not be started */
	int status;                    /* of waitpid() */
	bool killed;
};

struct hydnsd_hook {
	struct run run;
	bool running;
	pthread_t thread;
	struct hydnsd_watch *watch;
	struct hydnsd_hook_event waiting[HYDNSD_HOOK_WAITING];
	uint32_t first, count;
	struct hydnsd_hook_counts counts;
};

/* -- in the thread --------------------------------------------------------------------------------------------- */
/* Signals as a program expects them: hydnsd blocks some, and ignores others. */
static void set_attributes(posix_spawnattr_t *a)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(a, &none);
	posix_spawnattr_setsigdefault(a, &all);
	posix_spawnattr_setpgroup(a, 0);
	posix_spawnattr_setflags(a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
}

static int start(struct run *r, pid_t *pid)
{
	char *argv[] = { r->path, NULL }, *env[HYDNSD_HOOK_ENV + 2] = { PATH };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int n = 1, rc;

	for (int i = 0; i < HYDNSD_HOOK_ENV; i++)
		if (r->event.env[i][0])
			env[n++] = r->event.env[i];
	rc = posix_spawn_file_actions_init(&actions);
	if (rc)
		return rc;
	rc = posix_spawnattr_init(&attributes);
	if (!rc) {
		set_attributes(&attributes);
		posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
		posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
		posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
		rc = posix_spawn(pid, r->path, &actions, &attributes, argv, env);
		posix_spawnattr_destroy(&attributes);
	}
	posix_spawn_file_actions_destroy(&actions);
	return rc;
}

/* The program's number, and so that of its group, is nobody else's until it is waited for. */
static void wait_for(struct run *r, pid_t pid)
{
	struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN };
	int rc;

	do {
		rc = ended.fd < 0 ? 0 : poll(&ended, 1, r->most_ms);
	} while (rc < 0 && errno == EINTR);
	r->killed = rc == 0;
	if (r->killed)
		kill(-pid, SIGKILL);
	waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT);
	kill(-pid, SIGKILL);           /* what it has left */
	__atomic_store_n(&r->pid, 0, __ATOMIC_SEQ_CST);
	waitpid(pid, &r->status, 0);
	if (ended.fd >= 0)
		close(ended.fd);
}

static void *run(void *arg)
{
	struct run *r = arg;
	pid_t pid;

	r->killed = false;
	r->error = start(r, &pid);
	if (!r->error) {
		__atomic_store_n(&r->pid, pid, __ATOMIC_SEQ_CST);
		wait_for(r, pid);
	}
	eventfd_write(r->done, 1);
	return NULL;
}

/* -- in the event loop ------------------------------------------------------------------------------------------- */
static void begin(struct hydnsd_hook *h)
{
	int rc;

	h->run.event = h->waiting[h->first];
	h->first = (h->first + 1) % HYDNSD_HOOK_WAITING;
	h->count--;
	h->counts.run++;
	rc = pthread_create(&h->thread, NULL, run, &h->run);
	h->running = !rc;
	if (!rc)
		return;
	h->counts.failed++;
	hydnsd_log(HYDNSD_LOG_WARNING, "monitor-hook: no thread to start %s in: %s", h->run.path, strerror(rc));
}

static void judge(struct hydnsd_hook *h)
{
	const struct run *r = &h->run;

	if (r->error)
		hydnsd_log(HYDNSD_LOG_WARNING, "monitor-hook: cannot start %s: %s; correct it, or make it executable for hydnsd's user",
			   r->path, strerror(r->error));
	else if (r->killed)
		hydnsd_log(HYDNSD_LOG_WARNING, "monitor-hook: %s was killed after %d s (monitor-hook-seconds)", r->path, r->most_ms / 1000);
	else if (r->status)
		hydnsd_log(HYDNSD_LOG_WARNING, "monitor-hook: %s ended with status %d", r->path,
			   WIFEXITED(r->status) ? WEXITSTATUS(r->status) : 128 + WTERMSIG(r->status));
	h->counts.killed += !r->error && r->killed;
	h->counts.failed += r->error || (!r->killed && r->status);
}

static void ended(void *arg, uint32_t events)
{
	struct hydnsd_hook *h = arg;
	eventfd_t n;

	(void)events;
	if (eventfd_read(h->run.done, &n))
		return;
	pthread_join(h->thread, NULL);
	h->running = false;
	judge(h);
	while (h->count && !h->running)
		begin(h);
}

struct hydnsd_hook *hydnsd_hook_new(struct hydnsd_loop *loop, const char *path, uint32_t most_s)
{
	struct hydnsd_hook *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->run.most_ms = (int)most_s * 1000;
	h->run.path = strdup(path);
	h->run.done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->watch = h->run.done < 0 ? NULL : hydnsd_loop_watch(loop, h->run.done, EPOLLIN, ended, h);
	if (h->run.path && h->watch)
		return h;
	hydnsd_hook_free(h);
	return NULL;
}

/* A thread that can't end, as in a start from a file system that hangs, keeps its memory until the process ends. */
static bool end_thread(struct hydnsd_hook *h)
{
	struct timespec t;
	pid_t pid = __atomic_load_n(&h->run.pid, __ATOMIC_SEQ_CST);

	if (!h->running)
		return true;
	if (pid)
		kill(-pid, SIGKILL);
	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += LEAVE_S;
	return pthread_timedjoin_np(h->thread, NULL, &t) == 0;
}

void hydnsd_hook_free(struct hydnsd_hook *h)
{
	if (!h || !end_thread(h))
		return;
	hydnsd_watch_end(h->watch);
	if (h->run.done >= 0)
		close(h->run.done);
	free(h->run.path);
	free(h);
}

void hydnsd_hook_tell(struct hydnsd_hook *h, const struct hydnsd_hook_event *e)
{
	if (h->count == HYDNSD_HOOK_WAITING) {
		h->counts.left_out++;
		return;
	}
	h->waiting[(h->first + h->count++) % HYDNSD_HOOK_WAITING] = *e;
	if (!h->running)
		begin(h);
}

void hydnsd_hook_counts(const struct hydnsd_hook *h, struct hydnsd_hook_counts *out)
{
	*out = h->counts;
}
