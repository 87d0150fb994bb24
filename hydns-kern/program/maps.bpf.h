/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every map of the program, and the configuration that the loader sets before it loads the program.
 * doc/architecture.md ("Maps") says who writes which map. The sizes of slots, index, hits and claims given here are
 * the smallest that load; the loader replaces them with those of hydns_geometry.
 */
#ifndef HYDNS_KERN_PROGRAM_MAPS_BPF_H
#define HYDNS_KERN_PROGRAM_MAPS_BPF_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include "hydns/guard.h"
#include "hydns/own.h"
#include "hydns/reasons.h"
#include "hydns/resolver.h"
#include "hydns/rule.h"
#include "hydns/switch.h"
#include "hydns-kern/program/stages.h"

/* Load-time configuration: the verifier removes code that these constants make unreachable. */
const volatile struct hydns_geometry hydns_geometry = {};
const volatile bool hydns_ipv6 = true;
const volatile bool hydns_vlan = false;
/* Accept a UDP checksum field that holds the pseudo-header's sum alone, as in frames of a local sender that have never
 * been on a wire (CHECKSUM_PARTIAL on veth and virtio). */
const volatile bool hydns_partial_checksum = false;
/* Route replies by the kernel's routing tables instead of sending them back the way that the query came. */
const volatile bool hydns_fib = false;
/* Queries may be parked: the programs of the stages are called. */
const volatile bool hydns_miss_stage = false;
/* Queries may go to upstream servers: the stages of program/forward are called. */
const volatile bool hydns_forward_stage = false;
/* Resolvers may log answers: the stage that does is called. */
const volatile bool hydns_log_stage = false;
/* Give queries that no rule answers, and answers of upstream servers, to the resolvers' rings. */
const volatile bool hydns_queue = false;
/* Clients and names are counted (program/monitor). */
const volatile bool hydns_monitor = false;
/* Zones may be preloaded: the stage for names that do not exist is called. */
const volatile bool hydns_names_stage = false;
/* The dry run looks for such names too: hydns_names_stage of the program that it stands for. */
const volatile bool hydns_dry_names = false;
/* Such a query, or one whose answer is not logged or is limited, may go on: hydns_refused is called. */
const volatile bool hydns_refused_stage = false;
/* Queries may be analysed: the stages of program/monitor are called. */
const volatile bool hydns_analysis_stage = false;
/* Queries that were analysed, or that the guard has looked at, may go on: hydns_left is called. */
const volatile bool hydns_left_stage = false;
/* Queries may be stopped by the guard (program/guard): its limits, and whether its stage is called. A dry run has the limits alone. */
const volatile struct hydns_guard_config hydns_guard = {};
const volatile bool hydns_guard_stage = false;
/* Packets may be captured: hydns_capture is called while somebody does. */
const volatile bool hydns_may_capture = false;
/* A time that packet tests set, to know it to the nanosecond. 0: the kernel's clocks. */
const volatile __u64 hydns_fixed_now_ns = 0;
const volatile __u64 hydns_fixed_tai_ns = 0;

/* Which clients may be the host itself (own.h). hydnsd writes it before it attaches the program, and from then on. Each
 * loaded set of programs has its own, which is not pinned. */
__u64 hydns_own[HYDNS_OWN_WORDS];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_switch);
} hydns_switch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_REASONS);
	__type(key, __u32);
	__type(value, __u64);
} hydns_stats SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_resolver_count);
} hydns_answers SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, HYDNS_SERVICES);
	__type(key, struct hydns_service_key);
	__type(value, struct hydns_service);
} hydns_services SEC(".maps");

/* hydnsd advances it after every change of hydns_services, which invalidates what CPUs have cached of them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} hydns_svcserial SEC(".maps");

/* Inner maps have key_size and value_size instead of types: clang 14 leaves a type undefined that only an inner map
 * names. */
struct hydns_acl_map {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, HYDNS_ACL_ENTRIES);
	__uint(key_size, sizeof(struct hydns_acl_key));
	__uint(value_size, sizeof(__u32));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HYDNS_RESOLVERS * 2);
	__type(key, __u32);
	__array(values, struct hydns_acl_map);
} hydns_acls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__type(value, struct hydns_resolver_config);
} hydns_resolver SEC(".maps");

/* Secrets: no program may write them, and only a process with hydnsd's rights can read them. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_RDONLY_PROG);
	__uint(max_entries, HYDNS_RESOLVERS * 2);
	__type(key, __u32);
	__type(value, struct hydns_cookies);
} hydns_cookies SEC(".maps");

struct hydns_page_map {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, HYDNS_PAGE_ELEMENTS);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct hydns_resolver_page));
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, HYDNS_RESOLVERS);
	__type(key, __u32);
	__array(values, struct hydns_page_map);
} hydns_pages SEC(".maps");

struct hydns_chunk {
	__u64 word[HYDNS_CHUNK / 8];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_chunk);
} hydns_slots SEC(".maps");

/* Interfaces that a reply can leave by, by ifindex: those that the program is attached to. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP_HASH);
	__uint(max_entries, HYDNS_INTERFACES);
	__type(key, __u32);
	__type(value, __u32);
} hydns_out SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_bucket);
} hydns_index SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_line);
} hydns_hits SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_line);
} hydns_claims SEC(".maps");

/*
 * Programs behind a tail call (stages.h). Each loaded set of programs has its own map, which is not pinned: the kernel
 * empties it when the hydnsd that loaded them ends. From then on the tail call fails, and hydns_xdp goes on itself.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, HYDNS_STAGES);
	__type(key, __u32);
	__type(value, __u32);
} hydns_stages SEC(".maps");

/* What hydnsd has read and summed of the hits. No program reads these two. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_line);
} hydns_seen SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_tallies);
} hydns_tallies SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct hydns_geometry);
} hydns_meta SEC(".maps");

#endif
