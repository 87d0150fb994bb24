/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program under test, loaded with a fixed time. This code fills its maps, except for the rules, which the real rule store
 * publishes.
 */
#ifndef HYDNS_TEST_KERNEL_H
#define HYDNS_TEST_KERNEL_H

#include "frame.h"
#include "hydns/names.h"
#include "hydns/reasons.h"
#include "hydns-kern/loader/loader.h"
#include "hydns-kern/store/store.h"

#define NOW_NS      5000000000000ULL  /* by the program's clock */
#define RESOLVER    3
#define EPOCH       0x10001
#define EDNS_SIZE   1232              /* in the resolver's own OPT */
#define WALL_S      1559734385U       /* the program's wall clock ... */
#define TAI_OFFSET  37                /* ... and how far CLOCK_TAI is ahead of it */

struct kernel;

struct kernel_options {
	bool no_ipv6, vlan, fib, partial_checksum;
	bool real_clock;                  /* the program reads the kernel's clocks instead of NOW_NS */
	__u32 capacity;                   /* rules; 0: a few */
	bool verbose;                     /* print the verifier's counts */
	bool miss_stage;                  /* the program tail-calls hydns_miss for a query without a rule */
	bool forward;                     /* hydns_miss tail-calls hydns_forward_miss, and answers go to hydns_forwarded */
	bool queue;                       /* queries without an answer may go to rings */
	bool monitor;                     /* clients and names are counted */
	struct hydns_loader_guard guard;  /* off unless its mode is set */
	bool names;                       /* the program tail-calls hydns_below for a query without a rule */
	bool logs;                        /* the program tail-calls hydns_logged for a resolver that logs */
	bool no_capture;                  /* the program calls none that captures */
};

/* NULL: *why says what the host lacks. */
struct kernel *kernel_open(const struct kernel_options *o, const char **why);
/* Instructions that the verifier processed, of the program that took most; 0 unless opened with verbose. */
unsigned kernel_verified(const struct kernel *k);
/* As if closed and opened again, with all maps as they were then; but the programs need not be verified again. */
void kernel_anew(struct kernel *k);
void kernel_close(struct kernel *k);
/* How often the compiled program has an instruction with this code and immediate value. */
unsigned kernel_instructions(const struct kernel *k, __u8 code, __s32 imm);

/* Runs one frame through the program, in place; returns the XDP action. *reason: the one counted, or -1 when the program did
 * not count exactly one. */
int kernel_run(struct kernel *k, struct frame *f, int *reason);
/* As kernel_run(), but reads no counters; a negative error code if the kernel does not run the frame. */
int kernel_shoot(struct kernel *k, struct frame *f);
/* The counters of all reasons, summed over all CPUs. */
void kernel_reasons(struct kernel *k, __u64 reasons[HYDNS_REASONS]);
/* Descriptor of the map of this name. */
int kernel_map(const struct kernel *k, const char *name);
/* Sums over all CPUs this element, words of 64 bits, of the per-CPU map of this name. */
void kernel_sum(struct kernel *k, const char *map, __u32 key, unsigned words, __u64 *sum);
/* The outcome of a dry run of the frame. Aborts the test program if the run fails, or changes anything that a packet or
 * hydnsd would see. */
struct hydns_outcome kernel_dry(struct kernel *k, const struct frame *f);
/* As kernel_verified(), for the program of dry runs; call it after a dry run. Prints the count. */
unsigned kernel_dry_verified(const struct kernel *k);
/* Nanoseconds that the program takes for this frame by the kernel's statistics: the mean of runs in system calls of their own,
 * so caches are as cold as a system call leaves them. */
__u32 kernel_time(struct kernel *k, const struct frame *f, unsigned runs);

/* Publishes a as the answer to q, of this age; its life is 3600 s and it is never refreshed, unless edit() changes that.
 * Returns the handle, or 0. */
__u32 kernel_publish(struct kernel *k, const struct query *q, const struct answer *a, __u64 age_ns,
		     void (*edit)(struct hydns_rule *));
/* Rules published from now on have dependencies with these places (copied); count 0: more than fit. */
void kernel_depends_on(struct kernel *k, const __u16 *place, unsigned count);
/* Removes a rule; its slot is free at once. */
void kernel_remove(struct kernel *k, __u32 handle);
/* The rotation of the next answer from this rule: the number of answers in the word that will count it. */
__u32 kernel_rotation(struct kernel *k, __u32 handle);
/* From now on all CPUs count hits in one shared row (on), or each in its own. */
int kernel_share_hits(struct kernel *k, bool on);
struct hydns_store *kernel_store(struct kernel *k);
struct hydns_bucket *kernel_index(struct kernel *k);
const struct hydns_geometry *kernel_geometry(const struct kernel *k);
volatile struct hydns_resolver_page *kernel_page(struct kernel *k);
/* Sets the resolver's heartbeat to now, by the program's clock. */
void kernel_beat(struct kernel *k);
int kernel_prog_fd(const struct kernel *k);
/* Attaches the program to an interface, in the driver; returns the link's descriptor, or a negative error code. */
int kernel_attach(struct kernel *k, const char *device);
/* Attaches the program that sees what links refuse. */
bool kernel_watch_sent(struct kernel *k);
/* From now on test runs come from this interface; at first they come from the loopback interface. */
void kernel_set_ingress(struct kernel *k, unsigned ifindex);
/* Whether replies may leave by an interface, as if the program were attached to it. */
void kernel_allow_egress(struct kernel *k, unsigned ifindex, bool allow);

/* From now on the monitor counts in this window. */
void kernel_window(struct kernel *k, __u32 window);
/* Merges the registers of all CPUs, and clears them. */
void kernel_window_take(struct kernel *k, __u32 window, struct hydns_window *sum);
/* The guard's, HYDNS_GUARD_BUCKETS. */
struct hydns_guard_bucket *kernel_guard_cells(struct kernel *k);
/* By bit, the numbers of labels of guarded suffixes. */
void kernel_guard_labels(struct kernel *k, __u32 labels);
/* From now on these analysers run. */
void kernel_analyse(struct kernel *k, __u32 analysers);
/* All elements of the map, of each its CPUs', which are cleared; until the next call. */
void *kernel_analysis(struct kernel *k, enum hydns_analysis_map which);
unsigned kernel_cpus(const struct kernel *k);      /* that per-CPU elements have values for */

void kernel_pause(struct kernel *k, bool on);
/* Sets the flag that the store holds no rule, whatever it holds. */
void kernel_empty(struct kernel *k, bool on);
/* Sets both flags: that the store holds no rule, and whether there are lanes. */
void kernel_lanes(struct kernel *k, bool on);
/* Sets the range of ports that upstream queries leave from. */
void kernel_upstream(struct kernel *k, __u32 first, __u32 ports);
void kernel_config(struct kernel *k, const struct hydns_resolver_config *c); /* NULL: the usual one */
/* Adds or removes both services and advances the serial. */
void kernel_serve(struct kernel *k, bool on);
/* Sets the action of a prefix in the ACL half in use; -1 removes the prefix. */
void kernel_acl(struct kernel *k, const __u8 addr[16], unsigned prefixlen, int action);
/* Adds an address to the filter of the host's own addresses, or removes it. */
void kernel_own(struct kernel *k, const __u8 addr[16], bool on);
/* Writes the secrets of this set; the set in use, which the page names, is the caller's to change. */
void kernel_cookies(struct kernel *k, __u32 set, const struct hydns_cookies *c);
/* The one present SOA that there is room for behind the set of names, to be written; and where it is, to *gap. */
struct hydns_soa_now *kernel_soa(struct kernel *k, struct hydns_gap *gap);
/* The resolver's set of names, of the least size and open at first. */
struct hydns_names_bucket *kernel_names(struct kernel *k);
/* Puts a name (lower case) into the set: below it the template below that name answers; NULL: nothing is known. Returns its entry. */
struct hydns_names_entry *kernel_name(struct kernel *k, const char *name, const char *template);
/* Puts a name (lower case) into the table of children. */
void kernel_child(struct kernel *k, const char *name);
/* The same of a hash of the chain of the zone of this origin; and takes all of them out. */
void kernel_hash(struct kernel *k, const char *origin, const __u8 hash[HYDNS_SHA1_OCTETS]);
void kernel_no_children(struct kernel *k);
/* Limits the resolver's clients, by new budgets; NULL: no longer. Returns HYDNS_BUDGET_BUCKETS, mapped until the next call. */
struct hydns_budget_bucket *kernel_limit(struct kernel *k, const struct hydns_limits *l);
/* The same of its responses. */
struct hydns_rate_bucket *kernel_rate(struct kernel *k, const struct hydns_rates *r);
/* What the resolver does once it has logged all clients that have a balance, in this second of the wall clock. */
void kernel_log_rated(struct hydns_rate_bucket *buckets, __u32 second);
/* The resolver's counters, summed over all CPUs. */
void kernel_counts(struct kernel *k, struct hydns_resolver_count *sum);

#endif
