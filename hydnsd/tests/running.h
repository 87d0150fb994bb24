/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A daemon for tests, in a network and mount namespace with a bpffs, with its program attached (generic XDP) to the loopback
 * interface. For cmocka tests: a function that fails makes the test fail.
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

#include "hydns-kern/tests/emulated.h"
#include "plugin/plugin.h"

#define WAIT_MS   patience(8000)
#define STEP_US   10000
#define SKIPPED   77

extern char pins[64], plugin_path[64], control_path[64];
extern pid_t daemon_pid;

/* Enters the namespaces and makes the directories. False: that is impossible here; prints why to standard error. */
bool surroundings(void);
/* From here on $HYDNSD is the daemon that tests can hold at its seams. */
void take_held_daemon(void);
/* Teardown of a test: ends a daemon that a failed test has left running, and removes its pins and sockets. */
int clear(void **state);
/* Teardown of the group of tests. */
int tidy(void **state);

/* Starts $HYDNSD with these arguments after its common ones, which NULL ends. */
pid_t spawn(const char *interface, const char *const *more);
void start_daemon(void);
/* Not on the loopback interface, but on this one. */
void start_daemon_on(const char *interface, const char *const *more);
void start_daemon_with(const char *const *more);
int end_daemon(int with);
/* Ends the daemon by SIGTERM; fails when that leaves pins or sockets. */
void end_cleanly(void);

int connect_to(const char *path, int type);
/* Sends one request and returns the reply; NULL when no daemon answers. */
json_t *ask(const char *request);
json_int_t number(const char *request, const char *key);
/* The number with this key in a part ("parking") of what the reply says of the first resolver. */
json_int_t number_of_resolver(const char *request, const char *part, const char *key);
json_int_t rules(void);
/* How many offers were rejected for this reason (rejections.def). */
json_int_t rejected(const char *why);
/* Copies the value of a key from a pinned map, without hydnsd. */
bool look_up_pin(const char *name, const void *key, void *value); /* false: there is no such key */
void read_pin(const char *name, uint32_t key, void *value);
/* Whether the program consists of what resolvers have asked for. */
bool program_is_settled(void);
/* State of the first resolver; "none" without one. */
bool resolver_is(const char *state);

/* A resolver of the plugin library, which allows all clients; begin_resolver() starts it and waits until it is ready. */
struct hydns_plugin *make_resolver(uint32_t flush_timeout_ms, uint32_t refresh_percent);
void begin_resolver(struct hydns_plugin *p);
/* Writes "n<i>.example" in wire format and returns its length. */
uint8_t make_name(unsigned i, uint8_t *out);

#define WAIT_FOR(condition) do { \
	int left_ = WAIT_MS * 1000 / STEP_US; \
	while (!(condition) && left_--) \
		usleep(STEP_US); \
	assert_true(condition); \
} while (0)

#endif
