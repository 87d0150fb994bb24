/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The program under test, loaded with a time of our own choosing, its maps filled by hand except for the
 * rules, which the real store publishes.
 */
#ifndef HYDNS_TEST_KERNEL_H
#define HYDNS_TEST_KERNEL_H

#include "frame.h"
#include "hydns/reasons.h"
#include "hydns-kern/loader/loader.h"
#include "hydns-kern/store/store.h"

#define NOW_NS      5000000000000ULL  /* the program's clock */
#define RESOLVER    3
#define EPOCH       0x10001
#define EDNS_SIZE   1232              /* in the resolver's own OPT */
#define WALL_S      1559734385U       /* the program's wall clock ... */
#define TAI_OFFSET  37                /* ... and how far CLOCK_TAI is ahead of it */

struct kernel;

struct kernel_options {
	bool no_ipv6, vlan, fib, partial_checksum;
	bool real_clock;                  /* the program reads the kernel's clock, not NOW_NS */
	__u32 capacity;                   /* rules; 0: a few */
	bool verbose;                     /* print what the verifier counted */
	bool miss_stage;                  /* queries without a rule go to the program behind a tail call */
};

/* NULL: *why says what the host lacks. */
struct kernel *kernel_open(const struct kernel_options *o, const char **why);
/* Instructions that the verifier processed, of the program that took most; 0 unless opened with verbose. */
unsigned kernel_verified(const struct kernel *k);
void kernel_close(struct kernel *k);
/* Instructions of this code and immediate value in the program as it was compiled. */
unsigned kernel_instructions(const struct kernel *k, __u8 code, __s32 imm);

/* Runs one frame through the program, in place; returns the XDP action and the reason counted. Every
 * other counter must have stayed; -1 otherwise. */
int kernel_run(struct kernel *k, struct frame *f, int *reason);
/* The same without looking at the counters; they are summed by kernel_reasons(). */
int kernel_shoot(struct kernel *k, struct frame *f);
void kernel_reasons(struct kernel *k, __u64 reasons[HYDNS_REASONS]);
/* What all CPUs have in this element, words of 64 bits, of the map of this name. */
void kernel_sum(struct kernel *k, const char *map, __u32 key, unsigned words, __u64 *sum);
/* What a dry run says of the frame. Aborts the test program when that has changed anything that a packet or hydnsd would see,
 * or can't be made. */
struct hydns_outcome kernel_dry(struct kernel *k, const struct frame *f);
/* As kernel_verified(), of the program of dry runs, after one; the count is printed. */
unsigned kernel_dry_verified(const struct kernel *k);
/* Nanoseconds that the program takes for this frame, as the kernel's own statistics count them: mean of
 * single runs, each from the same frame, so caches are as cold as a system call leaves them. */
__u32 kernel_time(struct kernel *k, const struct frame *f, unsigned runs);

/* Publishes a's rule for q, of this age; life 3600 s, refresh never, unless edit() says otherwise. */
__u32 kernel_publish(struct kernel *k, const struct query *q, const struct answer *a, __u64 age_ns,
		     void (*edit)(struct hydns_rule *));
/* Rules published from here on depend on the names of these places (copied); 0: on too many. */
void kernel_depends_on(struct kernel *k, const __u16 *place, unsigned count);
void kernel_remove(struct kernel *k, __u32 handle);
/* By which turn the next answer from this rule is rotated: the count of answers where the next will be counted. */
__u32 kernel_turn(struct kernel *k, __u32 handle);
/* How all CPUs count hits from here on, as those do that have no row of their own: in one. Or each in its own again. */
int kernel_share_hits(struct kernel *k, bool on);
struct hydns_store *kernel_store(struct kernel *k);
struct hydns_bucket *kernel_index(struct kernel *k);
const struct hydns_geometry *kernel_geometry(const struct kernel *k);
volatile struct hydns_resolver_page *kernel_page(struct kernel *k);
/* The resolver's heartbeat, now by the program's clock. */
void kernel_beat(struct kernel *k);
int kernel_prog_fd(const struct kernel *k);
/* Test runs from here on come from this interface; at first they come from the loopback interface. */
void kernel_come_from(struct kernel *k, unsigned ifindex);
/* Whether replies may leave by an interface, as if the program were attached to it. */
void kernel_way_out(struct kernel *k, unsigned ifindex, bool open);

void kernel_pause(struct kernel *k, bool on);
/* Tells the program that the store holds no rule, whatever it holds. */
void kernel_empty(struct kernel *k, bool on);
void kernel_config(struct kernel *k, const struct hydns_resolver_config *c); /* NULL: the usual one */
/* Both services come or go, and the change is noted. */
void kernel_serve(struct kernel *k, bool on);
/* Sets what the current ACL half says of a prefix; -1 removes it. */
void kernel_acl(struct kernel *k, const __u8 addr[16], unsigned prefixlen, int action);
/* Whether the filter of the host's own addresses holds this one. */
void kernel_own(struct kernel *k, const __u8 addr[16], bool on);
/* The secrets of that set, in their place; the page's set is the caller's to change. */
void kernel_cookies(struct kernel *k, __u32 set, const struct hydns_cookies *c);
void kernel_counts(struct kernel *k, struct hydns_resolver_count *sum);

#endif
