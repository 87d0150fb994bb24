/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * held: the program that hold's test holds. Its main thread prints "ready", calls main_place() all the time, and counts signals
 * (SIGRTMIN) until a SIGTERM; then it prints their number. Each of its other threads starts the next one, calls thread_place(),
 * and ends.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include "common.h"

#define CHAINS 4

static volatile sig_atomic_t signals, over;

static void count(int number)
{
	(void)number;
	signals++;
}

static void end(int number)
{
	(void)number;
	over = 1;
}

__attribute__((noipa)) void main_place(void);
__attribute__((noipa)) void main_place(void)
{
}

__attribute__((noipa)) void thread_place(void);
__attribute__((noipa)) void thread_place(void)
{
}

static void *successor(void *unused)
{
	pthread_t next;
	int error = over ? 0 : pthread_create(&next, NULL, successor, unused);

	if (error)
		die("pthread_create", strerror(error));
	if (!over)
		pthread_detach(next);
	thread_place();
	return NULL;
}

int main(void)
{
	struct sigaction on_count = { .sa_handler = count }, on_end = { .sa_handler = end };
	sigset_t mine;
	pthread_t first;

	sigaction(SIGRTMIN, &on_count, NULL);
	sigaction(SIGTERM, &on_end, NULL);
	sigemptyset(&mine);
	sigaddset(&mine, SIGRTMIN);
	sigaddset(&mine, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &mine, NULL);       /* the other threads inherit it */
	for (int i = 0; i < CHAINS; i++)
		if (pthread_create(&first, NULL, successor, NULL))
			die("pthread_create", "no thread");
	pthread_sigmask(SIG_UNBLOCK, &mine, NULL);
	puts("ready");
	fflush(stdout);
	while (!over)
		main_place();
	printf("%d\n", (int)signals);
	return 0;
}
