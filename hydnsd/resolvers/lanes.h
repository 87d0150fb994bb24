/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Packet rings: which resolver has which lane. A lane's life: given (the resolver has its sockets), open (the program
 * redirects to them), closing (its record is deleted, its number is free after a grace period). Lanes outlive hydnsd with
 * the maps; those of a resolver end with its registration, those of an interface with the program there.
 */
#ifndef HYDNSD_RESOLVERS_LANES_H
#define HYDNSD_RESOLVERS_LANES_H

#include "hydns/ports.h"
#include "hydnsd/resolvers/lane_devices.h"

enum hydnsd_lane_state { HYDNSD_LANE_FREE, HYDNSD_LANE_GIVEN, HYDNSD_LANE_OPEN, HYDNSD_LANE_CLOSING };

struct hydnsd_lane {
	enum hydnsd_lane_state state;
	struct hydns_lane_key key;
	struct hydns_lane record;      /* as the program has it, or will have */
	uint64_t closing;              /* number of the grace period that it waits for */
};

struct hydnsd_lanes {
	struct hydnsd_lane lane[HYDNS_LANES];
	struct hydnsd_lane_devices devices;
	bool look;                     /* at the interfaces: they may have changed */
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
void hydnsd_lanes_stop(struct hydnsd *d);
/* For hydnsd_interfaces_start(). */
void hydnsd_lanes_interface_news(struct hydnsd *d, unsigned leaves);
/* Every HYDNSD_HOUSEKEEPING_MS: when interfaces may have changed, ends lanes that no longer fit, and tells plugins. */
void hydnsd_lanes_tick(struct hydnsd *d);
/* Reads the interfaces now; ends lanes that no longer fit. True: plans are others now. */
bool hydnsd_lanes_look(struct hydnsd *d);

/* The given or open lane of this receive queue; NULL: there is none. */
struct hydnsd_lane *hydnsd_lanes_find(struct hydnsd *d, const struct hydns_lane_key *key);
/* The given or open lane with this number, if it is resolver i's; else NULL. */
struct hydnsd_lane *hydnsd_lanes_own(struct hydnsd *d, uint32_t number, uint32_t i);
/* A lane of resolver i with this number of threads, given; NULL: there is no number left. */
struct hydnsd_lane *hydnsd_lanes_give(struct hydnsd *d, uint32_t i, const struct hydnsd_lane_device *device, uint32_t queue,
				      uint32_t threads);
/* Writes its record. 0 or a negative errno. */
int hydnsd_lanes_open(struct hydnsd *d, struct hydnsd_lane *l, uint32_t frame_max);
/* Deletes the record of a given or open lane. */
void hydnsd_lanes_close(struct hydnsd *d, struct hydnsd_lane *l);
/* Calls done (NULL: nobody) after a grace period, when the numbers of the lanes closed so far are free. */
void hydnsd_lanes_settle(struct hydnsd *d, void (*done)(struct hydnsd *d, uint64_t client, uint32_t tag), uint64_t client,
			 uint32_t tag);

/* The resolver's registration has ended: so do its lanes, and its gate. */
void hydnsd_lanes_release(struct hydnsd *d, uint32_t i);

#endif
