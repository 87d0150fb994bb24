/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The tests' own counterpart at the other end of the plugin socket: speaks the protocol of hydns/session.h over a real
 * socket, has a memfd as resolver page, and can misbehave. It uses nothing of the library's internals.
 */
#ifndef PLUGIN_TESTS_PEER_H
#define PLUGIN_TESTS_PEER_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "hydns-kern/tests/emulated.h"
#include "hydns/ring.h"
#include "hydns/session.h"

#define PEER_SERVICES_MAX 4
#define PEER_NOTE_MAX     128
#define PEER_PORT         30000   /* the first of those for queries to upstream */
#define PEER_PORTS        4096

enum peer_behaviour {
	PEER_WILLING,
	PEER_SILENT,       /* reads withdrawals, secrets, zones to forward and RESETs, and never replies */
	PEER_DYING,        /* closes the connection when a withdrawal comes */
	PEER_REFUSING,     /* refuses READY */
	PEER_NO_ACL,       /* refuses the second part of an access list */
	PEER_MUDDLED,      /* answers withdrawals with the number of another request */
	PEER_OCCUPIED,     /* refuses the first listening address, and is silent when it comes again */
	PEER_OTHER_ABI,    /* refuses HELLO, since it is of another version */
};

struct peer {
	char directory[64];
	char path[96];
	int listener, wake;
	pthread_t thread;
	_Atomic int behaviour;
	_Atomic int ready;          /* READYs acknowledged */
	_Atomic int hellos;
	_Atomic int resets;         /* RESETs read */
	_Atomic int withdrawals;    /* taken */
	_Atomic int byes;
	_Atomic int byes_before;    /* those taken when the last HELLO came */
	_Atomic int secrets;        /* COOKIES taken */
	_Atomic int retries;        /* times that the refused listening address came again */
	_Atomic int catch_ups;      /* CATCH_UPs read; each is acknowledged once the rings are empty */
	_Atomic bool forgetful;     /* never knows a page handed over */
	_Atomic uint64_t answered;  /* what it says to STATS */
	_Atomic bool last_words;    /* says it unasked before it closes */
	_Atomic int strays;         /* STRAYS read */
	_Atomic bool strays_held;   /* they wait for their reply */
	unsigned lane_at;           /* interface whose receive queue 0 is the plan's; 0: the plan is for upstream alone */
	_Atomic int lanes, opens;   /* LANEs and OPENs read */
	_Atomic int forwards;       /* FORWARDS read */
	_Atomic int sets;           /* NAMES read */
	_Atomic bool refuses_sets, has_set;
	int set;                    /* the last of these, a memfd; read it when sets has risen */
	_Atomic bool refuses_forwards;
	_Atomic bool dies_at_open;  /* closes the connection when an OPEN comes; once */
	_Atomic bool refuses_open;  /* does not know the lane of an OPEN on the next connection; once */
	/* Of the last HELLO; read them when ready has risen. */
	struct hydns_hello hello;
	unsigned rings;
	struct hydns_ring *ring[HYDNS_THREADS_MAX];
	int doorbell;
	struct hydns_resolver_page *page;
	struct hydns_resolver_page *old_page;
	uint32_t first_epoch;
	unsigned acl_entries;
	struct hydns_service_key service[PEER_SERVICES_MAX];
	unsigned services;
	in_port_t refused_port;     /* 0: none yet */
	char note[HYDNS_NOTES][PEER_NOTE_MAX]; /* under note_lock; a test reads them by peer_note() */
	pthread_mutex_t note_lock;
	_Atomic int notes;          /* messages taken */
	struct hydns_withdraw last_withdrawal;
	_Atomic int names_withdrawals, names_withdrawn; /* WITHDRAW_NAMES taken, and the names in them */
	uint8_t last_names[HYDNS_MSG_MAX] __attribute__((aligned(8))); /* of the last one, its payload */
	size_t last_names_len;
	_Atomic int preloads;       /* PRELOADs read */
	_Atomic bool preload_full;  /* each reply says that there is no room */
	_Atomic bool preload_news;  /* the next reply is preloaded, with lost behind it; else it is zero */
	struct hydns_preloaded preloaded;
	uint8_t lost[256];
	size_t lost_len;
	struct hydns_cookies cookies;
	struct hydns_forwards forward;  /* the last message's head */
	struct hydns_forward_server forward_server[HYDNS_FORWARD_UPSTREAMS];
	struct hydns_forward_name forward_zone[HYDNS_FORWARD_ZONES];
	unsigned forward_servers, forward_zones; /* so many, of all messages since the first one */
	uint64_t page_inode;
	int page_fd;
};

void peer_init(struct peer *p);      /* makes the socket's directory and the path, does not listen */
void peer_start(struct peer *p);
/* The notes of a kind that hold; good until the next call. For one thread of the test. */
const char *peer_note(struct peer *p, enum hydns_note_kind kind);
void peer_stop(struct peer *p);      /* closes the socket; rings and page stay mapped */
void peer_destroy(struct peer *p);

/* The next frame of a ring, copied out (at least len octets of room), or NULL. */
const struct hydns_frame *peer_frame(struct peer *p, unsigned ring, void *room, size_t size);

/* True when what the expression says became so within ten seconds, on an emulated machine a hundred. */
#define BECOMES(expression) __extension__ ({                                \
	unsigned wait_left = patience(10000);                               \
	bool became;                                                        \
	while (!(became = (expression)) && wait_left-- > 0)                 \
		peer_nap();                                                 \
	became; })
/* An AF_XDP socket, or -1. */
int peer_lane_socket(void);
void peer_nap(void);                 /* a millisecond */

#endif
