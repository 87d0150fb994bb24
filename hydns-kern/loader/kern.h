/* SPDX-License-Identifier: GPL-2.0-only */
/* Internal to the loader: what an open instance consists of, and what its files call of each other. */
#ifndef HYDNS_KERN_LOADER_KERN_H
#define HYDNS_KERN_LOADER_KERN_H

#include <limits.h>
#include "hydns-kern/loader/loader.h"
#include "hydns-kern/store/geometry.h"
#include "hydns.skel.h"             /* generated; needs the types of rule.h and resolver.h before it */

/* Memory-mapped arrays, in the order of hydns_kern.mapped. */
enum hydns_mapped {
	HYDNS_MAPPED_SLOTS,
	HYDNS_MAPPED_INDEX,
	HYDNS_MAPPED_HITS,
	HYDNS_MAPPED_CLAIMS,
	HYDNS_MAPPED_SEEN,
	HYDNS_MAPPED_TALLIES,
	HYDNS_MAPPED_META,
	HYDNS_MAPPED_GUARD,
	HYDNS_MAPPED
};

struct hydns_mapping {
	void *at;                      /* NULL: not mapped */
	size_t len;
};

struct hydns_page {                    /* a resolver page; map_fd -1: none */
	int map_fd;
	__u32 map_id;
	bool abandoned;
	struct hydns_mapping mapping;
};

#define HYDNS_PROGRAM  "hydns_xdp"
#define HYDNS_ACL_MAPS (HYDNS_RESOLVERS * 2)
#define HYDNS_ACL_ENTRY_MOST 128       /* octets of memory: two nodes of a trie, the prefix's and one where two part */

struct hydns_kern {
	struct hydns_bpf *skel;
	struct hydns_bpf *dry;         /* the copy for dry runs */
	char pin_dir[PATH_MAX];        /* through dir_fd, since the user that hydnsd becomes may not enter the directories above */
	char pin_dir_named[PATH_MAX];  /* as configured, for messages */
	int dir_fd;                    /* of pin_dir, locked: one writer of the store */
	struct hydns_mapping mapped[HYDNS_MAPPED];
	struct hydns_page page[HYDNS_RESOLVERS];
	int acl_fd[HYDNS_ACL_MAPS];
	__u32 acl_entries[HYDNS_ACL_MAPS];
	int log_fd[HYDNS_RESOLVERS];   /* log rings and ... */
	int budget_fd[HYDNS_RESOLVERS]; /* ... maps of budgets, ... */
	int names_fd[HYDNS_RESOLVERS]; /* ... and sets of names, that this hydnsd has made; -1: none, or a former one's */
	struct hydns_mapping ports;    /* hydns_ports */
	struct hydns_mapping parking, replays; /* hydns_parking, hydns_replays */
	struct hydns_parked_reader *parked; /* of hydns_parked */
	struct hydns_mapping forwarding; /* hydns_forward */
	struct hydns_answer_reader *answered; /* of hydns_answered */
	int sent_fd;                   /* attachment of hydns_sent; -1: none */
	int stray_fd;                  /* attachment of hydns_stray; -1: none */
	bool stray_wanted;             /* it is to be attached once a set has it */
	int former_stray_fd;           /* the one over the maps of a former hydnsd; -1: none */
	struct hydns_former *former;   /* maps that were pinned and not adopted; NULL: none, or unreadable */
	__u32 former_abi;              /* their ABI; 0: nothing was pinned, or it was adopted */
	bool published;                /* the pinned maps are these */
};

/* -- kern.c ---------------------------------------------------------------------------------------- */
/* Writes the line to why and returns err. */
int hydns_fail(char why[HYDNS_WHY], int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* -- loader.c -------------------------------------------------------------------------------------- */
/* From now on libbpf prints nothing; the next function has its last warning. */
void hydns_keep_warnings(void);
/* Says why the programs were not loaded, and returns err. */
int hydns_explain_load(int err, char why[HYDNS_WHY]);
/* Sets the sizes of the opened object's maps that depend on the capacity. */
int hydns_maps_size(struct hydns_bpf *b, const struct hydns_geometry *g);

/* -- compose.c ------------------------------------------------------------------------------------- */
/* Of an opened object, sets the constants for this composition, and which programs and maps it needs. */
int hydns_composition_set(struct hydns_bpf *b, const struct hydns_composition *with, char why[HYDNS_WHY]);
/* Whether the object has the part. */
bool hydns_composition_has(struct hydns_bpf *b, enum hydns_part part);
/* Takes parts, by bit, out of an opened object whose constants are another's, and sets which programs and maps it needs. */
void hydns_composition_leave_out(struct hydns_bpf *b, __u32 parts);
/* Makes the opened object use the maps that sets of programs share. */
int hydns_set_share(struct hydns_bpf *fresh, const struct hydns_bpf *of);

/* -- parts.c --------------------------------------------------------------------------------------- */
struct hydns_ring_reader {
	struct ring_buffer *buffer;    /* of all that have been followed */
	__u32 last;                    /* id of the map that was followed last */
};
/* Of an opened object, gives maps of parts that are out their least size. */
int hydns_parts_size(struct hydns_bpf *b, const struct hydns_composition *with);
/* Whether only one part uses this map. */
bool hydns_map_is_of_part(const struct hydns_bpf *b, const struct bpf_map *map);
/* k->skel has changed: the loader reads its maps of parts from now on. */
int hydns_parts_follow(struct hydns_kern *k);
/* Reads this ring buffer, too, if it is not the one that was followed last. */
int hydns_ring_follow(struct hydns_ring_reader *r, const struct bpf_map *map, ring_buffer_sample_fn fn, void *arg);

/* -- pins.c ---------------------------------------------------------------------------------------- */
/* pin_dir/prefix + name; -ENAMETOOLONG. Dots become ':', because a bpffs refuses dots and no interface name has
 * colons. */
int hydns_pin_path(char path[PATH_MAX], const char *pin_dir, const char *prefix, const char *name);
/* Interface number of a name as given or as in a pin's name; 0: there is none. */
int hydns_pinned_ifindex(const char *name);
/* The interface in the name of a pinned attachment, with ':' for dots; NULL: it is another pin. */
const char *hydns_pin_attachment(const char *name);
/* Whether a pin of this name is one that the loader makes. */
bool hydns_pin_is_ours(const char *name);
/* Makes pin_dir if missing, checks that it is in a bpffs and of a trusted user, locks it; returns its descriptor. */
int hydns_pin_dir_open(const char *pin_dir, uid_t uid, char why[HYDNS_WHY]);
/* Whether this map is one that analysers write: made only with option monitor, and not pinned, since nobody needs it later. */
bool hydns_map_is_of_analysers(const struct bpf_map *map);
/* The opened object's maps of analysers will be made, or not: then no analyser may be loaded. */
void hydns_analysers_make(struct hydns_bpf *b, bool make);
/* Whether this map is pinned, and so outlives hydnsd. */
bool hydns_map_is_pinned(const struct bpf_map *map);
/* Pins fd, in place of what is pinned under this name; a crash leaves the old pin or the new one. */
int hydns_pin_replace(int fd, const char *pin_dir, const char *prefix, const char *name);
/* Makes the opened, not yet loaded object use the pinned maps. False: one is missing or doesn't match
 * the object's definition, and none is used; a map of a part may lack. */
bool hydns_pins_adopt(struct hydns_kern *k);
/* Pins only the maps of parts, which may be others than before. */
int hydns_pins_publish_parts(struct hydns_kern *k, char why[HYDNS_WHY]);
/* The ABI version of the pinned set, of whatever size; 0: there is no complete set. */
__u32 hydns_pins_abi(const char *pin_dir);
/* Reads the pinned hydns_meta; false: there is none of this version. */
bool hydns_pins_geometry(const char *pin_dir, struct hydns_geometry *out);

/* -- maps.c ---------------------------------------------------------------------------------------- */
/* Maps an mmapable array into memory; writable: the arrays that hydnsd writes. */
int hydns_map_memory(int map_fd, bool writable, struct hydns_mapping *out);
void hydns_unmap_memory(struct hydns_mapping *m);
/* Kernel id of a map, or 0. */
__u32 hydns_map_id(int map_fd);
/* Writes to each CPU's scratch how it counts hits; before a program runs over new maps. */
int hydns_scratch_prepare(int scratch_fd, const struct hydns_geometry *g);

/* -- former.c -------------------------------------------------------------------------------------- */
/* Opens the pinned maps of this geometry; NULL: one is missing. */
struct hydns_former *hydns_former_open(const char *pin_dir, const struct hydns_geometry *g);

/* -- resolver_maps.c ------------------------------------------------------------------------------ */
void hydns_resolver_maps_close(struct hydns_kern *k);

/* -- monitor.c ---------------------------------------------------------------------------------------- */
int hydns_window_take(int map_fd, __u32 cpus, __u32 window, struct hydns_window *sum);
/* As hydns_kern_analysis_take(). */
int hydns_analysis_take(const struct hydns_bpf *b, __u32 cpus, enum hydns_analysis_map which, void *out);

/* -- guard.c ------------------------------------------------------------------------------------------ */
/* Sets the opened object's configuration of the guard. */
int hydns_guard_configure(struct hydns_bpf *b, const struct hydns_loader_guard *o);

/* -- counters.c, acl.c, pages.c --------------------------------------------------------------------- */
/* Sums the `words` u64 of a per-CPU array's element over all CPUs. */
int hydns_percpu_sum(int map_fd, __u32 cpus, __u32 key, unsigned words, __u64 *sum);
/* Adopts the pinned access lists and makes those that are missing. */
int hydns_acls_open(struct hydns_kern *k, bool adopted, char why[HYDNS_WHY]);
/* Pins those of a new set. */
int hydns_acls_publish(struct hydns_kern *k);
/* Adopts the pinned resolver pages; the others have none. */
void hydns_pages_open(struct hydns_kern *k);
void hydns_pages_close(struct hydns_kern *k);

/* -- programs.c -------------------------------------------------------------------------------------- */
/* Where the kernel runs a program. Attachments to interfaces are pinned. A hook of an interface has one program of ours at
 * most: more of them are its stages. */
enum hydns_hook {
	HYDNS_HOOK_XDP,
	HYDNS_HOOK_TC_INGRESS,
	HYDNS_HOOK_TC_EGRESS,
	HYDNS_HOOK_STAGE,              /* behind a tail call of another */
	HYDNS_HOOK_SK_LOOKUP,          /* when the kernel looks for a packet's socket, in a network namespace */
	HYDNS_HOOK_RAW_TRACEPOINT,     /* at an event of the kernel */
	HYDNS_HOOK_DRY_RUN,            /* nowhere but in BPF_PROG_TEST_RUN */
};
/* The program of this hook; NULL: there is none. */
struct bpf_program *hydns_program_at(const struct hydns_bpf *b, enum hydns_hook hook);
/* Of an opened object, only the programs of this hook will be loaded, and no stage will be called. */
void hydns_programs_only(struct hydns_bpf *b, enum hydns_hook hook);
/* Of an opened object, only those stages will be loaded that the configuration calls. */
void hydns_programs_called(struct hydns_bpf *b);
/* Puts the stages that the configuration calls in their places in hydns_stages. */
int hydns_stages_fill(struct hydns_bpf *b);
/* Gives the descriptor of hydns_capture up (libbpf's becomes one of /dev/null): a program array is emptied when the last process
 * that holds it ends, and that is to be hydnsctl. */
int hydns_capture_let_go(const struct hydns_bpf *b);

/* -- copy.c, dry.c ----------------------------------------------------------------------------------- */
/* A copy of the loaded object's program of this hook, over the same maps and with the same configuration; opened, not loaded.
 * It calls no stage. own_scratch: with its own hydns_scratch. NULL: errno says why. */
struct hydns_bpf *hydns_copy_open(const struct hydns_bpf *of, enum hydns_hook hook, bool own_scratch);
/* Makes the opened, not yet loaded object use the maps that copies share. */
int hydns_maps_share(struct hydns_bpf *copy, const struct hydns_bpf *of, bool own_scratch);
/* Loads the copy for hydns_dry_run(), which the caller destroys. Needs the rights for loading. */
int hydns_dry_open(const struct hydns_bpf *of, const struct hydns_geometry *g, struct hydns_bpf **out);
int hydns_dry_run(const struct hydns_bpf *dry, const void *frame, size_t len, unsigned ifindex, struct hydns_outcome *out);

/* -- parking.c --------------------------------------------------------------------------------------- */
/* Maps what hydnsd writes for parking, makes a new secret for carriers, and opens the ring buffer; used: queries may be parked, so
 * what links refuse is watched. */
int hydns_parking_open(struct hydns_kern *k, bool used);
void hydns_parking_close(struct hydns_kern *k);
/* Reads the ring buffer of k->skel, too. */
int hydns_parked_reader_follow(struct hydns_kern *k);
/* As hydns_kern_forwarded_to(). */
void hydns_parked_reader_forwarded(struct hydns_kern *k, void (*fn)(const struct hydns_parked *p, const struct hydns_forwarded *f,
								   void *arg), void *arg);
/* Attaches hydns_sent; a descriptor, by whose end it is detached, or a negative errno. */
int hydns_sent_attach(const struct hydns_bpf *b);
/* A carrier as hydns_xdp knows it. */
void hydns_carrier(const struct hydns_replays *r, __u8 carrier[HYDNS_CARRIER_LEN]);
/* As hydns_kern_replay(), by this hydns_xdp, over these frames. watched: hydns_sent sees what links refuse. */
int hydns_replay_run(int prog_fd, struct hydns_replays *r, bool watched, __u32 ifindex, __u32 rx_queue, __u32 count, __u32 *passed);

/* -- forwarding.c ------------------------------------------------------------------------------------ */
/* Maps what hydnsd tells the program, and opens the ring buffer. */
int hydns_forwarding_open(struct hydns_kern *k);
void hydns_forwarding_close(struct hydns_kern *k);
int hydns_answer_reader_follow(struct hydns_kern *k);

/* -- ports.c, stray.c -------------------------------------------------------------------------------- */
/* Maps the words of ports, and tells the program the range that the maps keep. */
int hydns_ports_open(struct hydns_kern *k);
/* Takes over the pinned attachment of hydns_stray; used: if packets may go to rings at all, else removes it. */
int hydns_stray_open(struct hydns_kern *k, bool adopted, bool used, char why[HYDNS_WHY]);
/* Closes descriptors; the pinned attachment stays. */
void hydns_stray_close(struct hydns_kern *k);
/* Puts the program of k->skel in the place of the attached one; detaches, if the set has none. */
int hydns_stray_exchange(struct hydns_kern *k, char why[HYDNS_WHY]);
/* Detaches what is pinned; 0 also when there is nothing. */
int hydns_stray_remove(const char *pin_dir, char why[HYDNS_WHY]);

/* -- attach.c ---------------------------------------------------------------------------------------- */
/* As hydns_kern_detach(), without a loaded program. */
int hydns_detach(const char *pin_dir, const char *ifname, char why[HYDNS_WHY]);
/* Puts the programs of k->skel in the place of those that the pinned attachments of an interface run, in their mode. 0 also when the
 * interface has gone. */
int hydns_attachment_exchange(struct hydns_kern *k, const char *ifname, char why[HYDNS_WHY]);

/* -- dispatcher.c ------------------------------------------------------------------------------------ */
int hydns_dispatcher_attach(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY]);
/* Attaches the program of k->skel anew, if the interface is marked; 0 also when it is not. */
int hydns_dispatcher_exchange(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY]);
/* 0 also when there is nothing to detach. */
int hydns_dispatcher_detach(const char *pin_dir, const char *ifname, char why[HYDNS_WHY]);

/* -- tc.c -------------------------------------------------------------------------------------------- */
struct hydns_tc {
	const char *pin_dir, *ifname;
	int ifindex;                   /* 0: the interface has gone (to detach only) */
	enum hydns_hook hook;          /* HYDNS_HOOK_TC_INGRESS or _EGRESS */
};
/* Attaches a tc program and pins the attachment, or replaces the program of a pinned one without a gap. */
int hydns_tc_attach(const struct hydns_tc *at, int prog_fd, char why[HYDNS_WHY]);
/* The same by a filter, as on kernels without tcx. */
int hydns_tc_attach_filter(const struct hydns_tc *at, int prog_fd, char why[HYDNS_WHY]);
/* 0 also when there is nothing to detach. */
int hydns_tc_detach(const struct hydns_tc *at, char why[HYDNS_WHY]);

/* Pin name prefixes besides the maps' own names. */
#define HYDNS_PIN_LINK       "link_"
#define HYDNS_PIN_DISPATCHED "shared_"  /* the program that libxdp's dispatcher calls on an interface */
#define HYDNS_PIN_TC_INGRESS "tc_ingress_"
#define HYDNS_PIN_TC_EGRESS  "tc_egress_"
#define HYDNS_PIN_PAGE       "page_"
#define HYDNS_PIN_ACL        "acl_"
#define HYDNS_PIN_STRAY      "stray_link"

#endif
