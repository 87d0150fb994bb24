/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the parts of hydnsctl share: command line, the connection to hydnsd, pinned maps, names and types, output. */
#ifndef HYDNSD_CTL_COMMON_H
#define HYDNSD_CTL_COMMON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "hydns/reasons.h"
#include "hydns/rule.h"

/* Exit codes, as documented in hydnsctl(8). */
enum ctl_exit { CTL_OK = 0, CTL_ERROR = 1, CTL_USAGE = 2 };

/* Names of the control protocol's fields and arguments; one that protocol.def does not have fails to compile. */
enum ctl_protocol {
#define PROTOCOL_FIELD(object, name, ...) CTL_FIELD_##object##_##name,
#define PROTOCOL_ARGUMENT(command, name, ...) CTL_ARGUMENT_##command##_##name,
#define PROTOCOL_INCLUDE(...)
#include "hydnsd/control/protocol.def"
#undef PROTOCOL_FIELD
#undef PROTOCOL_ARGUMENT
#undef PROTOCOL_INCLUDE
};
#define FIELD(object, name) ((void)CTL_FIELD_##object##_##name, #name)
#define ARGUMENT(command, name) ((void)CTL_ARGUMENT_##command##_##name, #name)

#define CTL_WHY 512          /* room for one line of cause and mend */

struct ctl {
	const char *socket_path;
	const char *pin_dir;
	const char *state_dir;
	bool json;           /* --json */
	bool once;           /* --once */
	bool dnssec_ok;      /* --do */
	bool norec;          /* --norec */
	const char *client;  /* --client: an address, or NULL */
	bool edns;           /* --edns */
	int edns_size;       /* its size; -1: not given */
	bool with_cookie;    /* --cookie */
	const char *cookie;  /* in hexadecimal digits; NULL: not given */
	bool all;            /* --all */
	const char *zone;    /* --zone; NULL: not given */
	unsigned limit;      /* -n; 0: the command's default */
	/* of capture, as they stand on the command line; NULL: not given */
	bool answered;       /* --answered */
	const char *passed[HYDNS_REASONS]; /* --passed, each time that it is given */
	unsigned passed_count;
	const char *name, *interface, *count, *seconds, *size, *snaplen;
	unsigned measure;    /* --measure, in seconds; 0: not given */
	bool costs;          /* --costs */
	/* of guard, as they stand on the command line; NULL: not given */
	const char *resolver, *queries, *action, *life;
	bool estimate;       /* --estimate */
	const char *origin;  /* --origin; NULL: not given */
	unsigned interval;   /* --interval, in seconds; 0: the command's default */
};

/* -- socket.c: the daemon ------------------------------------------------------------------------ */
enum ctl_reach {
	CTL_ANSWERED,        /* *reply is hydnsd's object, the caller's to free */
	CTL_NO_DAEMON,       /* nobody listens; why says where, and how to start hydnsd */
	CTL_REFUSED,         /* no permission, an error reply, or no reply of the protocol */
};
/* Sends a request, whose reference it takes, and waits for the reply. why: unless CTL_ANSWERED. */
enum ctl_reach ctl_call(const struct ctl *c, json_t *request, json_t **reply, char why[CTL_WHY]);
/* As ctl_call(). NULL: there is no answer, and the error is printed. */
json_t *ctl_ask(const struct ctl *c, json_t *request);
/* Prints it, as JSON or by print(), and frees it. Returns CTL_OK. */
int ctl_show_object(const struct ctl *c, json_t *o, void (*print)(const json_t *o));
/* Prints the reply, as JSON or by print(). Takes the reference. Returns the exit status. */
int ctl_show_reply(const struct ctl *c, json_t *request, void (*print)(const json_t *reply));
/* Sends cmd and prints the reply, as JSON (with "daemon": true) or by print(). prepare: may add to the reply; not 0: does not print
 * it, and has said why; or NULL. When hydnsd does not listen, calls without(), which prints what the pinned maps say; no_daemon: why.
 * Returns the exit status. */
int ctl_show(const struct ctl *c, const char *cmd, int (*prepare)(const struct ctl *c, json_t *reply), void (*print)(const json_t *reply),
	     int (*without)(const struct ctl *c, const char *no_daemon));

/* -- pins.c: pinned maps, root only ----------------------------------------------------------------- */
/* 0, or a negative errno and a line in why. */
bool ctl_pins_exist(const struct ctl *c);
/* A descriptor of the map of this name, not checked, or a negative errno. */
int ctl_pins_open(const struct ctl *c, const char *name);
int ctl_pins_paused(const struct ctl *c, bool *paused, char why[CTL_WHY]);
int ctl_pins_pause(const struct ctl *c, bool on, char why[CTL_WHY]);
/* reasons: HYDNS_REASONS entries, summed over CPUs. */
int ctl_pins_stats(const struct ctl *c, __u64 *reasons, char why[CTL_WHY]);
int ctl_pins_geometry(const struct ctl *c, struct hydns_geometry *out, char why[CTL_WHY]);
/* Calls fn for each pinned attachment; ifindex 0: its interface has gone. */
int ctl_pins_links(const struct ctl *c, void (*fn)(const char *ifname, unsigned ifindex, void *arg),
		   void *arg);
/* Id of the program that is attached to an interface by a pin; 0: none. */
__u32 ctl_pins_link_program(const struct ctl *c, const char *ifname);
/* False when this process may not see what is pinned. */
bool ctl_pins_readable(const struct ctl *c);
/* Resolver page i: epoch and age of the heartbeat (UINT64_MAX: zero, the resolver has gone). */
int ctl_pins_page(const struct ctl *c, unsigned i, __u32 *epoch, __u64 *age_ns);

/* -- name.c: names and types, by ldns ----------------------------------------------------------------- */
/* The name in presentation format (absolute, escaped as in RFC 1035), to be freed; or NULL and why. */
char *ctl_name(const char *text, char why[CTL_WHY]);
/* Number of a mnemonic or TYPEn (RFC 3597); -1 and why: it is neither, or no type of data. */
int ctl_type(const char *text, char why[CTL_WHY]);
/* The mnemonic of a type, a string or a number in JSON; made in buf from a number. */
const char *ctl_type_text(const json_t *type, char buf[16]);
/* The queries that a rule is for: plain, do, norec, do norec. */
const char *ctl_variant_text(const json_t *rule);

/* -- print.c ---------------------------------------------------------------------------------------------- */
/* Prints a line to standard error, after the program's name. */
void ctl_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
#define CTL_TEXT 32
/* 1234567 -> 1,234,567 */
const char *ctl_count(json_int_t n, char buf[CTL_TEXT]);
/* 4096 -> 4.0 KiB */
const char *ctl_bytes(double n, char buf[CTL_TEXT]);
/* milliseconds -> 40 ms, 12.3 s, 3 min 20 s, 3 h 12 min, 2 d 4 h */
const char *ctl_duration(json_int_t ms, char buf[CTL_TEXT]);
/* part of a whole: 12.3 %; "-" when the whole is 0 */
const char *ctl_share(double part, double whole, char buf[CTL_TEXT]);
/* events per second: 0.25/s, 12.3/s, 12,345/s */
const char *ctl_rate(double per_second, char buf[CTL_TEXT]);
/* Which of hydnsd and a resolver's plugin runs in another version than is installed, by their ABI. hydnsctl comes with what is
 * installed. */
/* The name of a refused plugin's process, from the reply or, where hydnsd may not see it, from /proc; "?": nobody knows. */
const char *ctl_process(const json_t *other_version, char out[CTL_TEXT]);
enum ctl_outdated { CTL_OUTDATED_RESOLVER, CTL_OUTDATED_HYDNSD, CTL_OUTDATED_BOTH };
enum ctl_outdated ctl_outdated(json_int_t hydnsd, json_int_t plugin);
/* Prints the object to standard output, indented, and takes the reference. */
void ctl_json(json_t *object);

json_int_t ctl_int(const json_t *object, const char *key);      /* 0 when it is not there */
double ctl_real(const json_t *object, const char *key);         /* 0 when it is not there */
const char *ctl_str(const json_t *object, const char *key);     /* "" when it is not there */
const char *ctl_text(const json_t *text);                       /* "" when it is none */

/* Prints the title, and the numbers of the object below it. */
void ctl_print_numbers(const char *title, const json_t *object);

/* A table with aligned columns. format: one letter per column, l or r. */
struct ctl_table;
struct ctl_table *ctl_table_new(const char *format);
/* Adds a cell, row by row; copies the text. */
void ctl_cell(struct ctl_table *t, const char *text);
/* Adds a row: a title for each column. */
void ctl_titles(struct ctl_table *t, const char *const title[]);
/* Prints all rows, indented, and frees the table. */
void ctl_table_print(struct ctl_table *t, unsigned indent);
/* The same, to a stream. */
void ctl_table_write(struct ctl_table *t, FILE *out, unsigned indent);

/* -- pending.c: parked queries, in status and in stats ---------------------------------------------------- */
void ctl_print_parking(const json_t *parking);
void ctl_print_parking_counts(const json_t *counts);

/* -- composition.c, measure.c, costs.c: the programs, in status ------------------------------------------------------ */
void ctl_print_composition(const json_t *composition);
#define CTL_PROGRAMS 32        /* measured at once; there are fewer */
/* Adds to each program what it has run in so many seconds. 0, or a negative errno and a line in why. */
int ctl_measure(json_t *programs, unsigned seconds, char why[CTL_WHY]);
/* Adds to each part what it costs. The same. */
int ctl_costs(json_t *status, char why[CTL_WHY]);

/* -- monitor.c: distinct clients and names, in stats and in watch -------------------------------------------- */
#define CTL_MONITOR_TEXT 256
/* One line; empty: the monitor is off. */
const char *ctl_monitor_text(const json_t *monitor, char text[CTL_MONITOR_TEXT]);
void ctl_print_monitor(const json_t *monitor);

/* -- guard.c: what stats and watch say of the guard ------------------------------------------------------------- */
#define CTL_GUARD_TEXT 192
/* One line; empty: the guard is off. */
const char *ctl_guard_text(const json_t *guard, char text[CTL_GUARD_TEXT]);
void ctl_print_guard(const json_t *guard);

/* -- forwards.c: forwarded queries, in status and in stats ------------------------------------------------- */
void ctl_print_forwarding(const json_t *forwarding);
void ctl_print_forwarding_counts(const json_t *counts);

/* -- commands; they return an exit code ------------------------------------------------------------------------- */
#define CTL_COMMAND(name, ...) int ctl_cmd_##name(const struct ctl *c, int argc, char **argv);
#include "hydnsd/control/commands.def"
#undef CTL_COMMAND

#endif
