/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#ifndef HYDNS_PLUGIN_START_THREAD_H
#define HYDNS_PLUGIN_START_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread of the plugin's own, to which no signal goes: they are the resolver's to handle. Returns 0 or an error number. */
static inline int hydns_start_thread(pthread_t *thread, void *(*main)(void *), void *arg)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);    /* inherited */
	error = pthread_create(thread, NULL, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

#endif
