/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the loader offers, one header a subject. Functions that return int return 0 or a negative errno unless they say
 * otherwise. With a `why` they leave one line there on failure: the cause and what to do about it. Not thread-safe, but for
 * hydns_set_load().
 */
#ifndef HYDNS_KERN_LOADER_LOADER_H
#define HYDNS_KERN_LOADER_LOADER_H

#include "hydns-kern/loader/open.h"     /* loading the programs over new or former maps, and closing them */
#include "hydns-kern/loader/compose.h"  /* exchanging the programs for others over the same maps */
#include "hydns-kern/loader/attach.h"   /* attaching to interfaces, detaching, removing everything */
#include "hydns-kern/loader/arrays.h"   /* memory-mapped arrays: the rule store, counters, tallies */
#include "hydns-kern/loader/former.h"   /* what a former hydnsd left */
#include "hydns-kern/loader/pages.h"    /* resolver pages */
#include "hydns-kern/loader/ports.h"    /* ports of queries to upstream, and where their stray answers go */
#include "hydns-kern/loader/tables.h"   /* kill switch, counters, services, resolvers' configuration, access lists */
#include "hydns-kern/loader/rings.h"    /* packet rings: lanes, the sockets of their threads, gates */
#include "hydns-kern/loader/parking.h"   /* queries that wait for a resolution, and their replay */
#include "hydns-kern/loader/forwarding.h" /* queries that go to upstream servers, and their answers */
#include "hydns-kern/loader/dry.h"      /* how the program would answer a packet */

#endif
