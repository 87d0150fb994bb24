/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings: which resolver has which lane. A lane's life: given (the resolver has its sockets), open (the program
 * redirects to them), closing (its record is deleted, its number is free after a grace period). Lanes outlive hydnsd with
 * the maps; those of an interface end with the program there.
 *
 * When a resolver's registration ends, its open lanes are held: their records are deleted, but the kernel lets nobody else
 * bind their receive queues while the process has their sockets. So a process that registers again, after a reload, opens
 * them again, and what waits in them is not lost. Once the last socket is closed the lane ends.
 */
#ifndef HYDNSD_RESOLVERS_LANES_H
#define HYDNSD_RESOLVERS_LANES_H

#include "hydns/ports.h"
#include "hydnsd/resolvers/lane_devices.h"

enum hydnsd_lane_state { HYDNSD_LANE_FREE, HYDNSD_LANE_GIVEN, HYDNSD_LANE_OPEN, HYDNSD_LANE_HELD, HYDNSD_LANE_CLOSING };

/* As the kernel says whose a connection is. */
struct hydnsd_process {
	pid_t pid;                     /* 0: not known, or of another PID namespace */
	uid_t uid;
};

struct hydnsd_lane {
	enum hydnsd_lane_state state;
	struct hydns_lane_key key;
	struct hydns_lane record;      /* as the program has it, or will have */
	struct hydnsd_process process; /* that has its sockets */
	uint64_t closing;              /* number of the grace period that it waits for */
};

struct hydnsd_lanes {
	struct hydnsd_lane lane[HYDNS_LANES];
	struct hydnsd_lane_devices devices;
	uint32_t next;                 /* number to be given: a number comes back as late as possible */
	bool look;                     /* at the interfaces: they may have changed */
	bool tell;                     /* plugins have lanes that hydnsd has closed */
	uint64_t closings;             /* grace periods that lanes have waited for */
	/* why a resolver's last request was refused; "": it was not, or a lane has opened since */
	char refusal[HYDNS_RESOLVERS][HYDNS_WHY];
	struct hydns_port_run ports;   /* of queries to upstream; 0: none was asked for so far, or the host reserves none */
	/* why a resolver has no packet rings for queries to upstream although it wants some; "" otherwise */
	char no_upstream[HYDNS_RESOLVERS][HYDNS_WHY];
};

/* Takes over the lanes that the map has, as far as their resolvers, interfaces and options still fit, and deletes the rest.
 * Call it when the program is attached and resolvers are adopted. 0, or a negative errno and a line in why. */
int hydnsd_lanes_start(struct hydnsd *d, char *why, size_t room);
/* Before the program is detached: no query to upstream leaves by a ring any more, as answers would find no socket. */
void hydnsd_lanes_leave(struct hydnsd *d);
void hydnsd_lanes_stop(struct hydnsd *d);
/* For hydnsd_interfaces_start(). */
void hydnsd_lanes_interface_news(struct hydnsd *d, unsigned leaves);
/* Every HYDNSD_HOUSEKEEPING_MS: when interfaces may have changed, ends lanes that no longer fit, and tells plugins. */
void hydnsd_lanes_tick(struct hydnsd *d);
/* Reads the interfaces now; ends lanes that no longer fit. True: plans are others now. */
bool hydnsd_lanes_look(struct hydnsd *d);

/* The given, open or held lane of this receive queue; NULL: there is none. A held one that nobody has sockets of ends. */
struct hydnsd_lane *hydnsd_lanes_find(struct hydnsd *d, const struct hydns_lane_key *key);
/* The given or open lane with this number, if it is resolver i's; else NULL. */
struct hydnsd_lane *hydnsd_lanes_own(struct hydnsd *d, uint32_t number, uint32_t i);
/* The lane with this number that is held for this process, whose sockets are open and which still fits; else NULL. */
struct hydnsd_lane *hydnsd_lanes_held(struct hydnsd *d, uint32_t number, const struct hydnsd_process *p);
/* A lane of resolver i with this number of threads, given; NULL: there is no number left. */
struct hydnsd_lane *hydnsd_lanes_give(struct hydnsd *d, uint32_t i, const struct hydnsd_lane_device *device, uint32_t queue,
				      uint32_t threads);
/* Writes its record, with these parts of it. 0 or a negative errno. */
int hydnsd_lanes_open(struct hydnsd *d, struct hydnsd_lane *l, uint16_t frame_max, uint8_t place);
/* Deletes the record of a given, open or held lane. */
void hydnsd_lanes_close(struct hydnsd *d, struct hydnsd_lane *l);
/* Calls done (NULL: nobody) after a grace period, when the numbers of the lanes closed so far are free. */
void hydnsd_lanes_settle(struct hydnsd *d, void (*done)(struct hydnsd *d, uint64_t client, uint32_t tag), uint64_t client,
			 uint32_t tag);

/* Why clients' queries do not come to resolver i by packet rings; "": nothing is known to be in the way. */
const char *hydnsd_lanes_why_none(const struct hydnsd *d, uint32_t i);

/* The resolver's registration has ended: so does its gate, and its lanes are held. */
void hydnsd_lanes_release(struct hydnsd *d, uint32_t i);

#endif
