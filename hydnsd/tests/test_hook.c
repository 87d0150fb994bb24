/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* The operator's program for conditions: real programs, which say in a file what they found. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "hydns-kern/tests/emulated.h"
#include "hydnsd/daemon/clock.h"
#include "hydnsd/monitor/hook.h"

#define WAIT_MS patience(20000)
#define LONG_S  1000                   /* longer than a test takes */

static char dir[] = "/tmp/hydnsd-hook-XXXXXX", program[64], said[64];
static struct hydnsd_loop *loop;
static struct hydnsd_hook *hook;
static uint64_t ends;                  /* that the loop runs for */
static uint64_t until_ms;
static uint64_t turns;
static pid_t left;                     /* a process of a program, which a test that fails would leave */

/* Looks often; the loop stops when so many runs are over. */
static uint32_t look(void *arg)
{
	struct hydnsd_hook_counts c;
	FILE *f = fopen(said, "r");
	uint64_t over = 0;
	int ch;

	(void)arg;
	hydnsd_hook_counts(hook, &c);
	while (f && (ch = fgetc(f)) != EOF)
		over += ch == '\n';
	if (f)
		fclose(f);
	turns++;
	if (over + c.killed + c.failed >= ends || hydnsd_now_ms() > until_ms)
		hydnsd_loop_stop(loop);
	return 0;
}

static void run_until(uint64_t n)
{
	ends = n;
	until_ms = hydnsd_now_ms() + WAIT_MS;
	hydnsd_loop_run(loop);
}

/* $OUT: the file to say it in. */
static void begin(const char *script, uint32_t most_s)
{
	FILE *f = fopen(program, "w");

	assert_non_null(f);
	fprintf(f, "#!/bin/sh\nOUT=%s\n%s\n", said, script);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(program, 0755), 0);
	unlink(said);
	loop = hydnsd_loop_new();
	assert_non_null(loop);
	hydnsd_loop_every(loop, 5, look, NULL);
	hook = hydnsd_hook_new(loop, program, most_s);
	assert_non_null(hook);
}

static int end(void **state)
{
	(void)state;
	if (left)
		kill(left, SIGKILL);
	left = 0;
	hydnsd_hook_free(hook);
	hydnsd_loop_free(loop);
	hook = NULL;
	loop = NULL;
	return 0;
}

static void tell(const char *variable)
{
	struct hydnsd_hook_event e = { 0 };

	snprintf(e.env[0], sizeof(e.env[0]), "HYDNS_EVENT=%s", variable);
	hydnsd_hook_tell(hook, &e);
}

static const char *text(void)
{
	static char t[4096];
	FILE *f = fopen(said, "r");
	size_t n = f ? fread(t, 1, sizeof(t) - 1, f) : 0;

	t[n] = '\0';
	if (f)
		fclose(f);
	return t;
}

static struct hydnsd_hook_counts counts(void)
{
	struct hydnsd_hook_counts c;

	hydnsd_hook_counts(hook, &c);
	return c;
}

/* Its environment is PATH and the event's; no descriptor of hydnsd's; signals as usual. */
static void surroundings(void **state)
{
	int leak = open("/dev/null", O_RDONLY);        /* without O_CLOEXEC */
	sigset_t set;

	(void)state;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	setenv("SECRET", "not for programs", 1);
	begin("echo event=$HYDNS_EVENT secret=$SECRET path=${PATH:+set} in=$(readlink /proc/$$/fd/0) out=$(readlink /proc/$$/fd/1) "
	      "leak=$(readlink /proc/$$/fd/9) $(sed -n 's/^\\(Sig[BI][lg][kn]\\).*\\(.\\{7\\}\\)$/\\1=\\2/p' /proc/self/status | tr '\\n' ' ')"
	      ">>$OUT", LONG_S);
	assert_int_equal(dup2(leak, 9), 9);
	tell("begin of all");
	run_until(1);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	close(9);
	close(leak);
	assert_string_equal(text(), "event=begin of all secret= path=set in=/dev/null out=/dev/null leak= "
				    "SigBlk=0000000 SigIgn=0000000\n");
}

static void make_fifo(char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s.go", said);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* Waits until a program opens it to read. The descriptor returned reads and writes, so that writing does not fail between two. */
static int await_reader(const char *path)
{
	int first, both;

	alarm(WAIT_MS / 1000);
	first = open(path, O_WRONLY | O_CLOEXEC);
	alarm(0);
	both = open(path, O_RDWR | O_CLOEXEC);
	assert_true(first >= 0 && both >= 0);
	close(first);
	return both;
}

/* One at a time, in order; what finds no room is left out. */
static void one_at_a_time(void **state)
{
	char expected[512] = "", line[32], go[HYDNSD_HOOK_WAITING + 1], path[PATH_MAX];
	int fifo = -1;

	(void)state;
	make_fifo(path);
	begin("test -e $OUT.lock && echo two >>$OUT; : >$OUT.lock; read go <$OUT.go; rm $OUT.lock; echo $HYDNS_EVENT >>$OUT", LONG_S);
	for (int i = 0; i < HYDNSD_HOOK_WAITING + 5; i++) {
		snprintf(line, sizeof(line), "%d", i);
		tell(line);
		if (i == 0)
			fifo = await_reader(path);
		if (i <= HYDNSD_HOOK_WAITING)
			strcat(strcat(expected, line), "\n");
	}
	assert_int_equal(counts().left_out, 4);
	memset(go, '\n', sizeof(go));          /* a line for each; until now the first one has waited */
	assert_int_equal(write(fifo, go, sizeof(go)), sizeof(go));
	run_until(HYDNSD_HOOK_WAITING + 1);
	close(fifo);
	unlink(path);
	assert_string_equal(text(), expected);
	assert_int_equal(counts().failed + counts().killed, 0);
}

/* `left' ends. */
static void assert_gone(void)
{
	struct pollfd ended = { .events = POLLIN };

	assert_true(left > 1);
	ended.fd = (int)syscall(SYS_pidfd_open, left, 0);
	if (ended.fd < 0)
		assert_int_equal(errno, ESRCH);
	else
		assert_int_equal(poll(&ended, 1, WAIT_MS), 1);
	if (ended.fd >= 0)
		close(ended.fd);
}

/* A program that does not end is killed with all of its group, and the loop goes on meanwhile. */
static void killed_after_its_time(void **state)
{
	(void)state;
	begin("trap '' TERM; tail -f /dev/null & echo $! >$OUT.pid; wait", 1);
	turns = 0;
	tell("begin");
	run_until(1);
	assert_int_equal(counts().killed, 1);
	assert_int_equal(counts().failed, 0);
	assert_true(turns > 10);
	strcat(said, ".pid");
	left = atoi(text());
	unlink(said);
	said[strlen(said) - 4] = '\0';
	assert_gone();
}

/* What it leaves behind in its group does not outlive it. */
static void leaves_nothing(void **state)
{
	(void)state;
	begin("tail -f /dev/null & echo $! >>$OUT", LONG_S);
	tell("begin");
	tell("end");                   /* the second run begins after the first one has ended */
	run_until(2);
	left = atoi(text());
	assert_gone();
}

static void failures_are_counted(void **state)
{
	(void)state;
	begin("exit 3", LONG_S);
	tell("begin");
	run_until(1);
	assert_int_equal(counts().failed, 1);
	end(NULL);
	begin("exit 0", LONG_S);
	assert_int_equal(chmod(program, 0), 0);
	assert_int_equal(unlink(program), 0);
	tell("begin");
	tell("end");
	run_until(2);
	assert_int_equal(counts().failed, 2);
	assert_int_equal(counts().run, 2);
}

/* The end of hydnsd ends it. */
static void ends_with_hydnsd(void **state)
{
	(void)state;
	begin("echo $$ >>$OUT; exec tail -f /dev/null", LONG_S);
	tell("begin");
	run_until(1);
	left = atoi(text());
	assert_true(left > 1 && kill(left, 0) == 0);
	hydnsd_hook_free(hook);
	hook = NULL;
	assert_true(kill(left, 0) && errno == ESRCH);
}

static int make(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(program, sizeof(program), "%s/program", dir);
	snprintf(said, sizeof(said), "%s/said", dir);
	return 0;
}

static int tidy(void **state)
{
	(void)state;
	unlink(program);
	unlink(said);
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(surroundings, end), cmocka_unit_test_teardown(one_at_a_time, end),
		cmocka_unit_test_teardown(killed_after_its_time, end), cmocka_unit_test_teardown(leaves_nothing, end),
		cmocka_unit_test_teardown(failures_are_counted, end), cmocka_unit_test_teardown(ends_with_hydnsd, end),
	};

	return cmocka_run_group_tests(tests, make, tidy);
}
