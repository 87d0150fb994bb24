/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * hydnsd's options. One table has name, type, range, default and help of each, for the config file, the command line, --help
 * and --print-options.
 */
#ifndef HYDNSD_DAEMON_OPTIONS_H
#define HYDNSD_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define HYDNSD_LIST_MAX 32
#define HYDNSD_CAPACITY_MAX 32000000U
#define HYDNSD_CONNECTIONS_MOST 256
#define HYDNSD_OPTION_ERROR 512

struct hydnsd_list {
	uint32_t count;
	char *item[HYDNSD_LIST_MAX];
};

enum hydnsd_auto { HYDNSD_AUTO, HYDNSD_YES, HYDNSD_NO };

enum hydnsd_vlan_offload { HYDNSD_VLAN_OFFLOAD_REFUSE, HYDNSD_VLAN_OFFLOAD_OFF, HYDNSD_VLAN_OFFLOAD_TRUST };
enum hydnsd_reply_path { HYDNSD_REPLY_AUTO, HYDNSD_REPLY_SWAP, HYDNSD_REPLY_FIB };
enum hydnsd_guard_suffix_mode { HYDNSD_GUARD_AUTOMATIC, HYDNSD_GUARD_MANUAL };
enum hydnsd_guard_cookies { HYDNSD_GUARD_COOKIES_EXEMPT, HYDNSD_GUARD_COOKIES_COUNT };
enum hydnsd_queue { HYDNSD_QUEUE_AUTO, HYDNSD_QUEUE_NO };

struct hydnsd_options {
	char *config;
	struct hydnsd_list interface;
	uint32_t attach_mode;          /* enum hydns_attach_mode */
	char *pin_dir;
	char *state_dir;
	struct hydnsd_list plugin_socket;
	char *plugin_group;
	uint32_t plugin_connections;
	uint32_t plugin_connections_per_user;
	uint32_t plugin_requests;
	uint32_t plugin_burst;
	uint32_t plugin_rate;          /* a second */
	uint32_t plugin_log_burst;
	uint32_t plugin_log_rate;      /* a second */
	char *control_socket;
	char *control_group;
	uint32_t capacity;
	uint32_t min_hits;
	uint32_t ipv6;                 /* enum hydnsd_auto */
	uint32_t vlan;                 /* enum hydnsd_auto */
	uint32_t vlan_offload;         /* enum hydnsd_vlan_offload */
	uint32_t reply_path;           /* enum hydnsd_reply_path */
	uint32_t partial_checksum;     /* enum hydnsd_auto */
	uint32_t queue;                /* enum hydnsd_queue */
	uint32_t pending_max;          /* 0: nothing is parked */
	uint32_t forwarding;           /* bool: resolvers may have zones forwarded; needs pending_max */
	uint32_t monitor;              /* bool: distinct clients and names are counted, and conditions judged */
	uint32_t monitor_window;       /* seconds */
	struct hydnsd_list monitor_condition; /* monitor/conditions.h */
	struct hydnsd_list monitor_analyser;  /* monitor/analyses.h */
	char *monitor_hook;            /* program to run when a condition begins or ends */
	uint32_t monitor_hook_seconds; /* after which it is killed */
	uint32_t guard;                /* enum hydns_guard_mode */
	uint32_t guard_client_queries; /* a second; 0: no limit */
	uint32_t guard_client_action;  /* enum hydns_guard_action: drop, truncate */
	uint32_t guard_client_slip;    /* with drop, one in so many is truncated; 0: none */
	uint32_t guard_ipv4_prefix, guard_ipv6_prefix; /* bits */
	uint32_t guard_cookies;        /* enum hydnsd_guard_cookies */
	uint32_t guard_suffix;         /* enum hydnsd_guard_suffix_mode */
	uint32_t guard_suffix_failures, guard_suffix_waiting; /* thresholds of reports; 0: none */
	uint32_t guard_suffix_queries; /* a second that go on */
	uint32_t guard_suffix_action;  /* enum hydns_guard_action */
	uint32_t guard_suffix_life;    /* seconds */
	char *user;
	char *group;
	uint32_t log_level;            /* enum hydnsd_log_level */
	uint32_t log_target;           /* enum hydnsd_log_target */
	char *pid_file;
	uint32_t keep_on_exit;         /* bool */
	/* what to do instead of running; command line only */
	uint32_t check;
	uint32_t clean;
	uint32_t help;
	uint32_t version;
	uint32_t print_options;
};

/*
 * Reads defaults, then the config file, then the command line; each replaces values of the one before, lists as a whole. The
 * default config file may be missing, one that --config names may not. 0, or -1 and a line in error (cause and mend). *out is
 * written on success only; free it by hydnsd_options_free().
 */
int hydnsd_options_read(int argc, char *const *argv, struct hydnsd_options *out,
			char error[HYDNSD_OPTION_ERROR]);
void hydnsd_options_free(struct hydnsd_options *o);

/* Takes from `fresh` the options that may change while hydnsd runs. changed: the names of those that differ; needs_restart: of others
 * that do; with spaces between, each with so much room. */
void hydnsd_options_apply(struct hydnsd_options *current, struct hydnsd_options *fresh,
			  char *changed, char *needs_restart, size_t room);

void hydnsd_options_help(FILE *out);
/* A line for each option: name, tab, type and range, tab, default. For the man page's test. */
void hydnsd_options_print(FILE *out);

#endif
