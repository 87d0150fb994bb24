/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the tests of rules share: a store for each test, offers that come into it, and withdrawals. */
#ifndef HYDNSD_TESTS_STORE_H
#define HYDNSD_TESTS_STORE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "hydnsd/tests/build.h"

#define NOW_NS   1000000000000ULL
#define CAPACITY 1000

/* Of the test that runs: new for each one, with room for CAPACITY rules. */
extern struct build_store store;
int open_store(void **state);
int close_store(void **state);
#define ON_STORE(f) cmocka_unit_test_setup_teardown(f, open_store, close_store)

/* Checks and admits an offer. */
enum hydnsd_rejection admit_by(const struct build_spec *spec, const struct hydnsd_offerer *by, uint64_t now_ns);
/* capacity: of the resolver; 0: no limit of its own. */
enum hydnsd_rejection admit(const struct build_spec *spec, uint32_t resolver, uint32_t capacity, uint64_t now_ns);
/* The same of resolver 1, for the address of a name, through an alias if target is not NULL; count: sightings in 10 s. */
enum hydnsd_rejection admit_address_at(const char *name, const char *target, uint32_t count, uint64_t now_ns);
enum hydnsd_rejection admit_address(const char *name, const char *target, uint32_t count);

/* Writes a name in wire format and returns its length. text: without escapes, with a dot at the end. */
size_t wire_of(const char *text, uint8_t *out);
/* Handle of resolver 1's rule for the name, type A; 0: there is none. */
uint32_t find(const char *name);

/* Scans the store in small pieces. Fails when they are more than there are ordinals. */
void whole_scan(struct hydnsd_scan *scan);
/* By a scan: rules offered before the generation (0: all). name: NULL for everything. Returns how many went. */
uint32_t withdraw_older(enum hydns_scope scope, const char *name, uint32_t resolver, uint64_t generation);
uint32_t withdraw(enum hydns_scope scope, const char *name, uint32_t resolver);

#endif
