/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Logged answers (hydns/logged.h): a thread of the plugin reads the log ring and writes what the resolver would have written: dnstap
 * messages to the collector that the resolver writes to, and lines of a query log. Messages of the resolver's own answers may go the
 * same way (own.c). It runs in the resolver's process since that has the right to write there, and sees the same paths. Nobody waits
 * for it: a ring that it does not empty fills up.
 */
#ifndef HYDNS_PLUGIN_DNSTAP_DNSTAP_H
#define HYDNS_PLUGIN_DNSTAP_DNSTAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include "hydns/logged.h"

/* Where dnstap messages go. */
enum hydns_dnstap_to { HYDNS_DNSTAP_NOWHERE, HYDNS_DNSTAP_UNIX, HYDNS_DNSTAP_TCP, HYDNS_DNSTAP_FILE };

/*
 * The resolver's TLS for a TCP connection. A session is of the thread alone that has opened it, and does not wait.
 *   read, write: octets moved, at least one. -1: errno says why; with EAGAIN *awaited is what the socket must have first, POLLIN or
 *   POLLOUT. read: 0, the other side has ended the session.
 */
struct hydns_dnstap_tls {
	void *(*context)(const void *of); /* of all sessions of a plugin; NULL: no memory. Keeps nothing of what it is made of */
	void (*context_free)(void *context);
	void *(*open)(void *context, int fd); /* NULL: no memory. fd stays the caller's */
	ssize_t (*read)(void *session, void *octets, size_t len, short *awaited);
	ssize_t (*write)(void *session, const void *octets, size_t len, short *awaited);
	void (*close)(void *session);
};

struct hydns_tap_zones;
struct hydns_dnstap_options {
	enum hydns_dnstap_to to;
	const char *path;            /* of a socket or file */
	struct sockaddr_storage address; /* TCP */
	socklen_t address_len;
	const struct hydns_dnstap_tls *tls; /* with TCP; NULL: none */
	void *tls_context;           /* what context() makes it of; the plugin's copy of these options has what it made */
	const char *beside;          /* a file: that of the resolver's own messages; when there is another of this name, a new one begins */
	bool one_way;                /* the collector sends nothing: no handshake. Always so for a file */
	bool queries, responses;     /* CLIENT_QUERY, CLIENT_RESPONSE */
	/* AUTH_QUERY, AUTH_RESPONSE, with by_flags alone: then these stand for the others, as named has it, where the query has no RD, or
	 * the query message also where the reply has no RA. */
	bool auth_queries, auth_responses;
	bool by_flags;
	struct hydns_tap_zones *zones; /* where AUTH_RESPONSE of an authoritative answer finds its zone; NULL: it has none */
	bool query_time;             /* responses have the time of the query, too */
	const char *identity, *version;  /* NULL: none */
	/* Lines of a query log for each record; NULL: none. On the thread, which nobody waits for. */
	void (*line)(const struct hydns_dnstap_options *o, const struct hydns_logged *r, const uint8_t *query, const uint8_t *reply);
	unsigned lines;              /* which, and ... */
	const char *view;            /* ... of what, as line() understands it */
	void (*thread_begins)(void), (*thread_ends)(void); /* on the thread; NULL: nothing */
	void (*log)(void *arg, bool bad, const char *text);
	void *log_arg;
};

struct hydns_tap;

/* Starts the thread. o and its strings are the caller's, and stay until hydns_tap_stop(). NULL: errno says why. */
struct hydns_tap *hydns_tap_start(const struct hydns_dnstap_options *o, struct hydns_tap_level *level);
/* A new log ring; what is in a former one comes first. True: map_fd is the tap's from now on. False: too many wait. */
bool hydns_tap_ring(struct hydns_tap *t, int map_fd);
/* A message of a client to which the resolver answers by itself, by UDP. */
struct hydns_tap_message {
	bool reply, auth;            /* CLIENT_RESPONSE, else CLIENT_QUERY; with auth AUTH_RESPONSE, else AUTH_QUERY */
	int64_t real_ns;             /* since 1970 */
	int64_t query_ns;            /* the same of a reply's query */
	const struct sockaddr *client, *service;
	const uint8_t *wire;         /* a DNS message of len octets */
	size_t len;
	const uint8_t *zone;         /* of zone_len octets in wire format, that an AUTH_RESPONSE is from; none if zone_len is 0 */
	size_t zone_len;
};
/* Takes a copy, to be written by the tap instead of the resolver. By any thread; waits for nobody. False: not taken, since it is not
 * wanted, there is no connection or no room, or it is too long. */
bool hydns_tap_own(struct hydns_tap *t, const struct hydns_tap_message *m);
/* Writes what is in the ring, as far as that takes a moment, ends the connection, and frees. No answer is logged any more. */
void hydns_tap_stop(struct hydns_tap *t);

/* -- reader.c: a BPF ring buffer, mapped -------------------------------------------------------------------- */
struct hydns_log_reader {
	int fd;                      /* -1: none */
	size_t size, page;
	_Atomic uint64_t *consumer;
	const _Atomic uint64_t *producer;
	const uint8_t *data;
	uint64_t at;                 /* read so far; what is before `consumer` may be overwritten */
};
/* Takes map_fd over if it succeeds. */
bool hydns_log_reader_open(struct hydns_log_reader *r, int map_fd);
void hydns_log_reader_close(struct hydns_log_reader *r);
/* The next record that is complete, of *len octets, without giving its room free; NULL: there is none. */
const struct hydns_logged *hydns_log_reader_next(struct hydns_log_reader *r, size_t *len);
/* What was read is done with: its room is free. Or it is read again. */
void hydns_log_reader_done(struct hydns_log_reader *r);
void hydns_log_reader_again(struct hydns_log_reader *r);

/* Where the question's name is in a query, behind the header, and how many octets it has. The program has read it, so it is there and in one piece. */
#define HYDNS_LOGGED_NAME 12
size_t hydns_logged_name(const struct hydns_logged *r);

/* -- zones.c: zones that answers came from ---------------------------------------------------------------------- */
/* NULL: no memory. */
struct hydns_tap_zones *hydns_tap_zones_new(void);
void hydns_tap_zones_free(struct hydns_tap_zones *z);
/* Names are in wire format and small letters. On any thread. */
void hydns_tap_zones_add(struct hydns_tap_zones *z, const uint8_t *name, size_t len);
void hydns_tap_zones_forget(struct hydns_tap_zones *z);
/* Where in the name of a question its zone begins; SIZE_MAX: it is not known. */
size_t hydns_tap_zones_find(const struct hydns_tap_zones *z, const uint8_t *name, size_t len, uint16_t qtype);

/* -- message.c: a dnstap message (protocol buffers, dnstap.info) ----------------------------------------------- */
/* Octets of the longest. */
#define HYDNS_DNSTAP_MOST (HYDNS_QUERY_MAX + HYDNS_LOGGED_REPLY + 1024)
#define HYDNS_DNSTAP_TEXT_MOST 255      /* octets of identity and version at most; longer ones are cut */
/* What all messages begin with: identity, version and type. */
struct hydns_dnstap_head {
	size_t len;
	uint8_t octets[2 * (HYDNS_DNSTAP_TEXT_MOST + 3) + 3];
};
void hydns_dnstap_begin(struct hydns_dnstap_head *h, const struct hydns_dnstap_options *o);
/* Writes the query's message or the reply's; returns its octets, or 0: no such message is wanted. h: of o. */
size_t hydns_dnstap_message(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_logged *r,
			    bool reply, int64_t real_ns, uint8_t out[HYDNS_DNSTAP_MOST]);
/* The same of the resolver's own; r: its addresses. */
size_t hydns_dnstap_own_message(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_logged *r,
				const struct hydns_tap_message *m, uint8_t out[HYDNS_DNSTAP_MOST]);

/* -- stream.c: Frame Streams ---------------------------------------------------------------------------------- */
struct hydns_stream {
	int fd;                      /* -1: none */
	bool is_socket, one_way;
	const struct hydns_dnstap_tls *tls;
	void *session;               /* NULL: without TLS */
	uint64_t handshake_ends_ns;  /* CLOCK_MONOTONIC: nothing is awaited of the other side later */
	const _Atomic bool *stopping; /* from then on nothing waits long for the other side */
};
/* 0 or a negative errno. */
int hydns_stream_open(struct hydns_stream *s, const struct hydns_dnstap_options *o);
/* Writes frames as they are, with their lengths before them. After an error the stream is closed. */
int hydns_stream_write(struct hydns_stream *s, const void *frames, size_t len);
/* Whether the other side has gone. */
bool hydns_stream_gone(struct hydns_stream *s);
void hydns_stream_close(struct hydns_stream *s);

/* -- own.c: frames of the resolver's own messages -------------------------------------------------------------- */
struct hydns_own_frames {
	pthread_mutex_t lock;        /* of `filling`, and of that half's octets and length */
	uint8_t *octets[2];
	size_t len[2];
	unsigned filling;            /* which half; the other one is the writer's */
};
enum hydns_own_put { HYDNS_OWN_FULL, HYDNS_OWN_PUT, HYDNS_OWN_HALF }; /* half: so much is there that it should be written soon */
/* False: no memory; to be destroyed nevertheless. */
bool hydns_own_frames_init(struct hydns_own_frames *f);
void hydns_own_frames_destroy(struct hydns_own_frames *f);
enum hydns_own_put hydns_own_frames_put(struct hydns_own_frames *f, const uint8_t *frame, size_t len);
/* Writes what came first, by the one thread that does; returns how many octets. After an error, which is negative, all is there still. */
size_t hydns_own_frames_write(struct hydns_own_frames *f, struct hydns_stream *s, int *error);
/* A message in a frame, of so many octets; 0: it can't be made, or is not wanted. */
size_t hydns_own_frame(const struct hydns_dnstap_options *o, const struct hydns_dnstap_head *h, const struct hydns_tap_message *m,
		       uint8_t out[4 + HYDNS_DNSTAP_MOST]);

#endif
