/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The seams of hydnsd, for tests/held_hydnsd: the shipped objects, linked with these wrappers (ld's --wrap, see Makefile.am)
 * around functions that one file calls in another. Without a table (seams.h) they do nothing.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <stddef.h>
#include <sys/syscall.h>

#include "hydns-kern/loader/cpus.h"
#include "hydns-kern/store/store.h"
#include "hydnsd/resolvers/changed_names.h"
#include "hydnsd/resolvers/rings.h"
#include "hydnsd/resolvers/withdrawals.h"
#include "hydnsd/rules/offer.h"
#include "hydnsd/rules/rules.h"
#include "plugin/tests/seams.h"

/* -- the grace thread ---------------------------------------------------------------------------------------- */
long __real_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	long rc;

	if (number != SYS_membarrier || a != MEMBARRIER_CMD_GLOBAL || !seams)
		return __real_syscall(number, a, b, c, d, e, f);
	atomic_fetch_add(&seams->barriers, 1);
	seam(SEAM_GRACE, "barrier");
	rc = atomic_load(&seams->no_barrier) ? 0 : __real_syscall(number, a, b, c, d, e, f);
	seam(SEAM_GRACE, "barrier_over");
	return rc;
}

/* With a table, the threads of this file are two: the barrier alone ends a grace period. */
int __real_hydns_cpus_tour(void);
int __wrap_hydns_cpus_tour(void);
int __wrap_hydns_cpus_tour(void)
{
	return seams ? -EOPNOTSUPP : __real_hydns_cpus_tour();
}

/* -- the loop ------------------------------------------------------------------------------------------------- */
int __real_hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w, size_t n,
				  const struct hydnsd_withdrawal_end *end);
int __wrap_hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w, size_t n,
				  const struct hydnsd_withdrawal_end *end);
int __wrap_hydnsd_withdrawals_begin(struct hydnsd *d, const struct hydnsd_withdrawal *w, size_t n,
				  const struct hydnsd_withdrawal_end *end)
{
	if (seams)
		atomic_fetch_add(&seams->withdrawals, 1);
	seam(SEAM_LOOP, "withdraw");
	return __real_hydnsd_withdrawals_begin(d, w, n, end);
}

/* epoll has said that the doorbell was rung. */
void __real_hydnsd_rings_wake(struct hydnsd_session *s);
void __wrap_hydnsd_rings_wake(struct hydnsd_session *s);
void __wrap_hydnsd_rings_wake(struct hydnsd_session *s)
{
	seam(SEAM_LOOP, "bell");
	__real_hydnsd_rings_wake(s);
}

void __real_hydnsd_rules_grace_end(struct hydnsd_rules *r);
void __wrap_hydnsd_rules_grace_end(struct hydnsd_rules *r);
void __wrap_hydnsd_rules_grace_end(struct hydnsd_rules *r)
{
	seam(SEAM_LOOP, "acknowledge");
	__real_hydnsd_rules_grace_end(r);
}

enum hydnsd_rejection __real_hydnsd_offer_check(const struct hydns_offer *frame, size_t len,
						const struct hydnsd_offer_limits *limits, struct hydnsd_answer *out);
enum hydnsd_rejection __wrap_hydnsd_offer_check(const struct hydns_offer *frame, size_t len,
						const struct hydnsd_offer_limits *limits, struct hydnsd_answer *out);
enum hydnsd_rejection __wrap_hydnsd_offer_check(const struct hydns_offer *frame, size_t len,
						const struct hydnsd_offer_limits *limits, struct hydnsd_answer *out)
{
	seam(SEAM_LOOP, "take_offer");
	return __real_hydnsd_offer_check(frame, len, limits, out);
}

void __real_hydnsd_changed_names_record(struct hydnsd_changed_names *c, uint64_t generation, uint64_t bits);
void __wrap_hydnsd_changed_names_record(struct hydnsd_changed_names *c, uint64_t generation, uint64_t bits);
void __wrap_hydnsd_changed_names_record(struct hydnsd_changed_names *c, uint64_t generation, uint64_t bits)
{
	seam(SEAM_LOOP, "take_changed");
	__real_hydnsd_changed_names_record(c, generation, bits);
}

bool __real_hydnsd_scan_step(struct hydnsd_rules *r, struct hydnsd_scan *p, uint64_t now_ns, uint32_t budget);
bool __wrap_hydnsd_scan_step(struct hydnsd_rules *r, struct hydnsd_scan *p, uint64_t now_ns, uint32_t budget);
bool __wrap_hydnsd_scan_step(struct hydnsd_rules *r, struct hydnsd_scan *p, uint64_t now_ns, uint32_t budget)
{
	bool over;

	seam(SEAM_LOOP, "step");
	over = __real_hydnsd_scan_step(r, p, now_ns, budget);
	if (seams && over)
		atomic_store(&seams->swept, true);
	if (seams)
		atomic_fetch_add(&seams->steps, 1);
	return over;
}

/* -- the store: counts its rules whenever they change ------------------------------------------------------------ */
static void count(const struct hydns_store *s)
{
	if (seams)
		atomic_store(&seams->rules, hydns_store_count(s));
}

int __real_hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle, __u32 *replaced);
int __wrap_hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle, __u32 *replaced);
int __wrap_hydns_store_publish(struct hydns_store *s, const struct hydns_rule_parts *p, __u32 *handle, __u32 *replaced)
{
	int rc = __real_hydns_store_publish(s, p, handle, replaced);

	count(s);
	return rc;
}

void __real_hydns_store_remove(struct hydns_store *s, __u32 handle);
void __wrap_hydns_store_remove(struct hydns_store *s, __u32 handle);
void __wrap_hydns_store_remove(struct hydns_store *s, __u32 handle)
{
	__real_hydns_store_remove(s, handle);
	count(s);
}
