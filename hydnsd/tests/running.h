/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A daemon of the tests' own: in a network and mount namespace with a bpffs, its program attached (generic) to the
 * loopback interface. For cmocka tests: what cannot be fails the test that asks for it.
 */
#ifndef HYDNSD_TESTS_RUNNING_H
#define HYDNSD_TESTS_RUNNING_H

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <unistd.h>
#include <cmocka.h>

#include "plugin/plugin.h"

#define WAIT_MS   8000
#define STEP_US   10000
#define SKIPPED   77

extern char pins[64], plugin_path[64], control_path[64];
extern pid_t daemon_pid;

/* Enters the namespaces and makes the directories. False: that can't be done here, and standard error has been told why. */
bool surroundings(void);
/* From here on $HYDNSD is the daemon that can be held at its seams. */
void take_held_daemon(void);
/* Teardown of a test: ends the daemon that one which has failed left behind, and removes what that held. */
int clear(void **state);
/* Teardown of the group of tests. */
int tidy(void **state);

/* Starts $HYDNSD with these arguments after its common ones, which NULL ends. */
pid_t spawn(const char *interface, const char *const *more);
void start_daemon(void);
void start_daemon_with(const char *const *more);
int end_daemon(int with);
/* By SIGTERM; it must leave nothing behind. */
void end_cleanly(void);

int connect_to(const char *path, int type);
/* One request, one reply; NULL when nobody is there. */
json_t *ask(const char *request);
json_int_t number(const char *request, const char *key);
json_int_t rules(void);
/* Offers refused for this reason (rejections.def). */
json_int_t rejected(const char *why);
/* Copies the one value of a pinned map's key, read past hydnsd. */
void read_pin(const char *name, uint32_t key, void *value);
/* State of the first resolver; "none" without one. */
bool resolver_is(const char *state);

/* The publish library's own resolver, whom everybody may ask; begin_resolver() starts it and waits until it is ready. */
struct hydns_plugin *make_resolver(uint32_t flush_timeout_ms, uint32_t refresh_percent);
void begin_resolver(struct hydns_plugin *p);
/* "n<i>.example", as in messages; its length. */
uint8_t make_name(unsigned i, uint8_t *out);

#define WAIT_FOR(condition) do { \
	int left_ = WAIT_MS * 1000 / STEP_US; \
	while (!(condition) && left_--) \
		usleep(STEP_US); \
	assert_true(condition); \
} while (0)

#endif
