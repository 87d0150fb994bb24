/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loading, pinning, attaching and adopting the XDP program and its maps. All functions return 0 or a
 * negative errno and then leave one line in `why` (cause and mend, at most HYDNS_WHY bytes). Needs
 * CAP_BPF and CAP_NET_ADMIN; hydns_kern_open() needs CAP_PERFMON too, because without it the verifier
 * refuses the program's arithmetic on packet pointers. Not thread-safe.
 */
#ifndef HYDNS_KERN_LOADER_LOADER_H
#define HYDNS_KERN_LOADER_LOADER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "hydns/own.h"
#include "hydns/reasons.h"
#include "hydns/rule.h"
#include "hydns/session.h"
#include "hydns-kern/store/geometry.h"

#define HYDNS_WHY 256

enum hydns_attach_mode { HYDNS_ATTACH_NATIVE, HYDNS_ATTACH_GENERIC, HYDNS_ATTACH_DISPATCHER };

struct hydns_loader_options {
	const char *pin_dir;           /* a directory in a bpffs; made if missing */
	uid_t owner;                   /* who may own it besides root and this process: the user that it becomes */
	__u32 capacity;                /* rules */
	bool accept_partial_checksum;  /* interfaces whose driver hands over CHECKSUM_PARTIAL (veth, virtio) */
	bool ipv6;
	bool vlan;                     /* answer frames with one or two VLAN tags, tags kept */
	bool fib;                      /* route replies instead of sending them back where the query came from */
	bool miss_stage;               /* hand queries without a rule on to a program of their own */
};

/* Tells each CPU's scratch how to count hits, before a program runs over new maps. */
int hydns_scratch_prepare(int scratch_fd, const struct hydns_geometry *g);

struct hydns_kern;                     /* one loaded program with its maps */

/*
 * Loads the program. Maps already pinned in pin_dir by a compatible hydnsd (same ABI version and
 * geometry) are taken over, *adopted is set, and every rule in them goes on being served; otherwise
 * they are made and pinned anew with fresh secrets.
 */
int hydns_kern_open(const struct hydns_loader_options *o, struct hydns_kern **out, bool *adopted,
		    char why[HYDNS_WHY]);

/*
 * What a former hydnsd left pinned and hydns_kern_open() has not taken over. Its program goes on counting there until it is
 * exchanged on all interfaces. To be asked for once and closed by the caller; NULL: there is nothing that can be read.
 * *other_abi: the ABI of what has another; 0: nothing has.
 */
struct hydns_former;
struct hydns_former *hydns_kern_former(struct hydns_kern *k, __u32 *other_abi);
void hydns_former_close(struct hydns_former *f);
/* Its rule store, to be opened once more; valid until it is closed. */
struct hydns_store_memory;
void hydns_former_memory(struct hydns_former *f, struct hydns_store_memory *out);
/* The kernel's number of resolver i's page; 0: it has none. */
__u32 hydns_former_page(const struct hydns_former *f, __u32 i);
/* As hydns_kern_resolver_counts(). */
int hydns_former_counts(const struct hydns_former *f, __u32 i, struct hydns_resolver_count *sum);
/* The kernel's number of the page that this descriptor is; 0: it is no page. */
__u32 hydns_kern_page_id(int map_fd);

/* Attaches to an interface, or swaps the program of a pinned attachment atomically (bpf_link update).
 * The attachment is pinned as <pin_dir>/link_<ifname> ('.' in a name as ':', a bpffs takes no dots) and
 * outlives the process. Mode dispatcher needs full root rights: attach before giving them up. */
int hydns_kern_attach(struct hydns_kern *k, const char *ifname, enum hydns_attach_mode mode,
		      char why[HYDNS_WHY]);
int hydns_kern_detach(struct hydns_kern *k, const char *ifname, char why[HYDNS_WHY]);

/* Calls fn with the name of each interface that an attachment is pinned for, of a former hydnsd too; fn may detach. */
int hydns_kern_attached_each(struct hydns_kern *k, void (*fn)(const char *ifname, void *arg), void *arg);

/* Removes every attachment and pin below pin_dir, also those of a hydnsd that crashed; works without
 * a loaded program. */
int hydns_kern_clean(const char *pin_dir, char why[HYDNS_WHY]);
/* The same for the pin directory of a loaded program, as the user that it belongs to; close it afterwards. */
int hydns_kern_remove(struct hydns_kern *k, char why[HYDNS_WHY]);

/* Closes descriptors and mappings. Attachments and pins stay: the program goes on answering. */
void hydns_kern_close(struct hydns_kern *k);

const struct hydns_geometry *hydns_kern_geometry(const struct hydns_kern *k);
/* Memory-mapped, writable. Slots; index; hits [rows * lines]; claims [lines]; hits accounted for, by ordinal; counts. */
__u8 *hydns_kern_slots(struct hydns_kern *k);
struct hydns_bucket *hydns_kern_index(struct hydns_kern *k);
const struct hydns_line *hydns_kern_hits(struct hydns_kern *k);
struct hydns_line *hydns_kern_claims(struct hydns_kern *k);
__u32 *hydns_kern_seen(struct hydns_kern *k);
struct hydns_tallies *hydns_kern_tallies(struct hydns_kern *k);

int hydns_kern_pause(struct hydns_kern *k, bool on);            /* the kill switch */
int hydns_kern_paused(struct hydns_kern *k, bool *on);
/* Sum over CPUs, HYDNS_REASONS entries. */
int hydns_kern_stats(struct hydns_kern *k, __u64 *reasons);
int hydns_kern_resolver_counts(struct hydns_kern *k, __u32 resolver, struct hydns_resolver_count *sum);

int hydns_kern_service_set(struct hydns_kern *k, const struct hydns_service_key *key, __u32 resolver);
int hydns_kern_service_delete(struct hydns_kern *k, const struct hydns_service_key *key);
/* Walks all registered services; stops when fn returns non-zero. */
int hydns_kern_service_each(struct hydns_kern *k,
			    int (*fn)(const struct hydns_service_key *, __u32 resolver, void *), void *arg);

/* Makes a new resolver page for index i (old mappings of a former resolver lose their effect), maps
 * it read-only, and returns a map descriptor to hand to the plugin; the caller closes it. Pinned as
 * page_<i>. */
int hydns_kern_page_new(struct hydns_kern *k, __u32 i, __u32 epoch, int *map_fd, char why[HYDNS_WHY]);
/* The index whose page this map descriptor is, by kernel map id, or -ENOENT. */
int hydns_kern_page_find(struct hydns_kern *k, int map_fd);
/* True when no process can write the page any more: its resolver has ended, however fresh its heartbeat is. */
bool hydns_kern_page_abandoned(struct hydns_kern *k, __u32 i);
int hydns_kern_page_delete(struct hydns_kern *k, __u32 i);
const volatile struct hydns_resolver_page *hydns_kern_page(struct hydns_kern *k, __u32 i); /* NULL: none */

int hydns_kern_resolver_config(struct hydns_kern *k, __u32 i, const struct hydns_resolver_config *c);
int hydns_kern_resolver_config_get(struct hydns_kern *k, __u32 i, struct hydns_resolver_config *c);
/* Cookie secrets in the place of that set number, whatever number c itself bears. Not one store: a program
 * that looks there meanwhile may see a mixture, unless c->set or the former one is not the page's. */
int hydns_kern_cookies(struct hydns_kern *k, __u32 i, __u32 set, const struct hydns_cookies *c);
int hydns_kern_cookies_get(struct hydns_kern *k, __u32 i, __u32 set, struct hydns_cookies *c);
/* Replaces the content of ACL map i*2+half (not the current half: switch by authority_config). */
int hydns_kern_acl_fill(struct hydns_kern *k, __u32 i, unsigned half, const struct hydns_acl_entry *e,
			size_t n);
/* Prefixes of the half in use, room for them at most; returns how many. An entry has no reason (why). */
int hydns_kern_acl_read(struct hydns_kern *k, __u32 i, struct hydns_acl_entry *e, size_t room);
/* The filter of the host's own addresses (own.h): all of them, the former ones no more. */
void hydns_kern_own_set(struct hydns_kern *k, const __u64 filter[HYDNS_OWN_WORDS]);
/* HYDNS_RESOLVER_ALLOWS_*: of which address family such an ACL allows everybody. */
__u16 hydns_acl_flags(const struct hydns_acl_entry *e, size_t n);

/*
 * Which reason a packet would be counted under, by the program itself, which writes nothing that anybody else sees: no count, no
 * claim of a refresh. ifindex: of the interface that it would come in by; where the kernel runs none as from there, as from the
 * loopback interface, whose MTU is larger. NO_ROOM is never the outcome: drivers alone know it. CAP_BPF is enough. A caller of
 * its own at a time.
 */
struct hydns_outcome {
	enum hydns_reason reason;
	enum hydns_reason beneath;     /* the same, but not looking whether all is paused or without rules */
};
int hydns_kern_dry_run(struct hydns_kern *k, const void *frame, size_t len, unsigned ifindex, struct hydns_outcome *out);

/* The word of hydns_meta that says that the store is empty; for hydns_store_open(). */
__u32 *hydns_kern_empty(struct hydns_kern *k);
/* Next session number, kept in the pinned maps. The first epoch of a registration is session << 16; with HYDNS_EPOCH_FLAGS
 * left out of it, the same one comes again after 16,384 registrations. */
__u32 hydns_kern_next_page_serial(struct hydns_kern *k);
int hydns_kern_prog_fd(const struct hydns_kern *k);             /* for BPF_PROG_TEST_RUN */
int hydns_kern_memory(struct hydns_kern *k, __u64 *bytes);      /* of all maps, as the kernel accounts */

#endif
