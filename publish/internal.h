/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the files of this library share. Each part names its file; nothing here is for resolvers.
 */
#ifndef HYDNS_PUBLISH_INTERNAL_H
#define HYDNS_PUBLISH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include "publish/hot.h"
#include "publish/publish.h"

#define HYDNS_NS_PER_S   1000000000ULL
#define HYDNS_NS_PER_MS  1000000ULL

/* -- clock.c -------------------------------------------------------------------------------------- */
uint64_t hydns_mono_ns(void);
uint64_t hydns_mono_coarse_ms(void);
uint64_t hydns_real_ns(void);
/* The wall clock and the monotonic one at the same moment, to lead times of one over to the other. */
struct hydns_moment {
	uint64_t real_ns, mono_ns;
};
struct hydns_moment hydns_moment(void);
/* Seconds that CLOCK_TAI is ahead of the wall clock: 0, or what a time service has told the kernel. */
int32_t hydns_tai_offset(void);

/* -- log.c ---------------------------------------------------------------------------------------- */
struct hydns_publish;
void hydns_log(const struct hydns_publish *p, enum hydns_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* -- key.c: names and questions as keys ------------------------------------------------------------- */
/* Octets of a well-formed uncompressed wire name with its root label; 0: malformed or longer than max. */
size_t hydns_name_length(const uint8_t *name, size_t max);
/* len octets of src to dst in lower case (dst may be src). */
void hydns_name_lower(uint8_t *dst, const uint8_t *src, size_t len);
/* hydns_key_hash() of the lower-cased question; the name may be in any case. authority is 0: the key is
 * the process's own. */
uint64_t hydns_question_key(const struct hydns_question *q, const uint64_t seed[2]);

/* -- wire.c: what may be offloaded ------------------------------------------------------------------- */
struct hydns_wire_answer {
	uint16_t reply_flags;            /* network order, as struct hydns_offer */
	uint16_t ancount, nscount, arcount; /* network order, without the OPT */
	uint16_t answer;                 /* offset into the message of what follows the question ... */
	uint16_t answer_len;             /* ... and its octets, without the OPT */
	uint32_t ttl;                    /* seconds; smallest of all records */
	uint16_t edns_size;              /* payload size of the OPT; 0: there is none */
	uint16_t answer_names;           /* the first of these, which the answer section shows */
	uint16_t names;                  /* names that the answer is built from, beside the question's: */
	uint16_t name[2 * HYDNS_TTLS_MAX]; /* ... owners and CNAME targets, offsets into the message */
	uint16_t rrtype[2 * HYDNS_TTLS_MAX]; /* of the owner's RRset (its RRSIGs count to it); target: 0 */
};
/* HYDNS_KEPT_NONE, or why the kernel path can't reproduce this reply to this question and the number that goes with the
 * reason; *out only on success. */
enum hydns_kept_why hydns_wire_dissect(const uint8_t *wire, size_t len, const struct hydns_question *q,
				       struct hydns_wire_answer *out, uint32_t *value);
/*
 * Reads a name that may be compressed (RFC 1035 section 4.1.4; pointers lead backwards only). name: at
 * least HYDNS_NAME_MAX octets, filled in lower case with *name_len octets, or NULL for both. Returns the
 * offset after the name where it stands, or 0 when it is malformed.
 */
size_t hydns_wire_name(const uint8_t *wire, size_t len, size_t at, uint8_t *name, size_t *name_len);

/* -- ring.c: the producer of one ring --------------------------------------------------------------- */
struct hydns_producer {
	struct hydns_ring *ring;         /* shared header, the frames HYDNS_RING_DATA after it */
	uint32_t head;                   /* our own: hydnsd could write the shared one */
	int fd;                          /* sealed memfd */
};
int hydns_producer_open(struct hydns_producer *r);       /* negative errno */
void hydns_producer_close(struct hydns_producer *r);
/* Room for a frame of len octets (a multiple of 8) in one piece that leaves so many spare, or NULL: full. */
void *hydns_producer_reserve(struct hydns_producer *r, uint32_t len, uint32_t spare);
/* Publishes the reserved frame. True when hydnsd sleeps and the doorbell must be written. */
bool hydns_producer_commit(struct hydns_producer *r, uint32_t len);
/* Less than half of the ring is in use. */
bool hydns_producer_roomy(const struct hydns_producer *r);
/* Copies the frame at this position, of those before end, as far as there is room; returns its length, 0: it is none.
 * Another thread than the producer's may call it; whether hydnsd has given the frame back meanwhile it must look itself. */
uint32_t hydns_producer_peek(const struct hydns_producer *r, uint32_t position, uint32_t end, void *out, size_t room);

/* -- names.c: which names may stand in a rule, and which have changed --------------------------------- */
struct hydns_names;
struct hydns_names *hydns_names_new(uint32_t capacity, const uint64_t seed[2]);
void hydns_names_free(struct hydns_names *t);
/* For hydns_names_offer(), to be read before the answer's data; 0 as long as nobody watches. */
uint64_t hydns_names_changes(const struct hydns_names *t);
/* From now on changes are noted. */
void hydns_names_watch(struct hydns_names *t);
/* What of a name a rule holds or a change concerns: all its data, or the RRset of this type, in host order,
 * as a part of answers to other questions than that one. */
#define HYDNS_NAMES_ALL 0
/* A rule built from name (lower case) may live until then. False: it has changed since changes, or nobody watched then;
 * somebody does now. */
bool hydns_names_offer(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what,
		       uint64_t until_ms, uint64_t changes);
/* Notes a change; true when a rule built from it may live or be on its way. */
bool hydns_names_change(struct hydns_names *t, const uint8_t *name, size_t len, uint16_t what,
			uint64_t now_ms);

/* -- ends.c: how far the ends of RRsets have moved ---------------------------------------------------- */
struct hydns_ends;
enum hydns_moved {
	HYDNS_MOVED_LITTLE,     /* rules may stay: none counts down to an end more than a second from this one */
	HYDNS_MOVED_LATER,      /* rules must follow, or go: TTLs that they send have become too low */
	HYDNS_MOVED_EARLIER,    /* rules must go: they would outlive the data, or send too high TTLs */
};
struct hydns_ends *hydns_ends_new(const uint64_t seed[2]);
void hydns_ends_free(struct hydns_ends *t);
/* The RRset of this name (lower case), type (host order) and sections (two copies have two ends), whose data are the
 * same, ended at was in the cache and now ends at is: wall-clock seconds modulo 2^32. Any thread may call it. */
enum hydns_moved hydns_ends_move(struct hydns_ends *t, const uint8_t *name, size_t len, uint16_t rrtype,
				 enum hydns_shown shown, uint32_t was, uint32_t is);

/* -- subtrees.c: below which names anything was offered ------------------------------------------------- */
struct hydns_subtrees;
struct hydns_subtrees *hydns_subtrees_new(const uint64_t seed[2]);
void hydns_subtrees_free(struct hydns_subtrees *t);
/* Counts an offer that shows or rests on the name (lower case, well-formed), for it and all its ancestors. */
void hydns_subtrees_offer(struct hydns_subtrees *t, const uint8_t *name, size_t len);
/* How many offers were counted for the name so far: to be read before the generation is advanced. */
uint64_t hydns_subtrees_offers(struct hydns_subtrees *t, const uint8_t *name, size_t len);
/* After that: true when none was counted since the name was last settled. */
bool hydns_subtrees_settled(struct hydns_subtrees *t, const uint8_t *name, size_t len);
/* All that was counted up to offers has been withdrawn. */
void hydns_subtrees_settle(struct hydns_subtrees *t, const uint8_t *name, size_t len, uint64_t offers);

/* -- kept.c: why answers were not offered ----------------------------------------------------------------- */
/* In the part of a ring's memory that follows its frames. */
void hydns_kept_note(struct hydns_ring *ring, uint64_t key, enum hydns_kept_why why, uint32_t value, uint64_t now_ms);

/* -- notes.c: what the operator is told of the configuration ----------------------------------------------- */
struct hydns_notes {
	pthread_mutex_t lock;
	char **text[HYDNS_NOTES];        /* by kind */
	size_t count[HYDNS_NOTES];
	_Atomic uint32_t changed;        /* times that they were set anew */
};
void hydns_notes_init(struct hydns_notes *n);
void hydns_notes_destroy(struct hydns_notes *n);
int hydns_notes_add(struct hydns_notes *n, enum hydns_note_kind kind, const char *text);    /* negative errno */
int hydns_notes_set(struct hydns_notes *n, enum hydns_note_kind kind, const char *const *text, size_t count);
/* The message for note number i of the kind, or for there being none, at most room octets; its length. 0: no such
 * note. */
size_t hydns_notes_message(struct hydns_notes *n, enum hydns_note_kind kind, size_t i, struct hydns_note *out,
			   size_t room);

/* -- page.c: the authority page ------------------------------------------------------------------------ */
struct hydns_pages;
struct hydns_pages *hydns_pages_new(void);
void hydns_pages_free(struct hydns_pages *g);            /* unmaps; nobody may read them any more */
uint64_t hydns_pages_generation(const struct hydns_pages *g);
uint32_t hydns_pages_epoch(const struct hydns_pages *g); /* suspended or not */
uint64_t hydns_pages_advance_generation(struct hydns_pages *g); /* the new one */
void hydns_pages_advance_epoch(struct hydns_pages *g);
/* Until _resume() no rule counts, or none that depends on a name of this place (HYDNS_TOUCHED_PLACE). True when all did
 * until now. */
bool hydns_pages_suspend(struct hydns_pages *g);
bool hydns_pages_touch(struct hydns_pages *g, uint32_t place);
bool hydns_pages_suspended(const struct hydns_pages *g); /* some rules or all */
void hydns_pages_resume(struct hydns_pages *g);          /* link thread only */
void hydns_pages_beat(struct hydns_pages *g, uint64_t mono_ns); /* 0: gone, for good */
void hydns_pages_tell_tai(struct hydns_pages *g, int32_t offset);
void hydns_pages_tell_cookies(struct hydns_pages *g, uint32_t set); /* not by two threads at once */
int hydns_pages_fd(const struct hydns_pages *g);         /* of the shared page's map; -1: none yet */
/* Link thread only. Takes map_fd over (closed on failure too). The former page is dead from here on. */
int hydns_pages_switch(struct hydns_pages *g, int map_fd, uint32_t epoch, uint64_t mono_ns);
/* Waits until every XDP program that was running has ended. False: the kernel can't tell, a conservative
 * time was waited. */
bool hydns_grace(void);

/* -- cookies.c: the secrets of DNS cookies --------------------------------------------------------------- */
struct hydns_secrets {
	pthread_mutex_t lock;
	struct hydns_cookies cookies;    /* set 0: the resolver has never named any */
};
void hydns_secrets_init(struct hydns_secrets *s);
void hydns_secrets_destroy(struct hydns_secrets *s);     /* wipes them */
/* True when these n secrets are not those of before; then they have a new number, which the page says. */
bool hydns_secrets_change(struct hydns_secrets *s, struct hydns_pages *g,
			  const uint8_t (*secret)[HYDNS_COOKIE_SECRET_LEN], size_t n);
/* Says the number on a page that is new. */
void hydns_secrets_tell(struct hydns_secrets *s, struct hydns_pages *g);
/* The caller wipes the copy. */
void hydns_secrets_copy(struct hydns_secrets *s, struct hydns_cookies *out);

/* -- channel.c: messages to hydnsd --------------------------------------------------------------------- */
struct hydns_channel_message {
	struct hydns_msg head __attribute__((aligned(8)));   /* the payload holds 64-bit counts */
	uint8_t payload[HYDNS_MSG_MAX - sizeof(struct hydns_msg)];
	int fd[2];                       /* received descriptors, -1: none; owned by the receiver */
};
int hydns_channel_connect(const char *path);             /* non-blocking descriptor or negative errno */
/* 0, -EAGAIN or another negative errno. fds: borrowed. */
int hydns_channel_send(int sock, const struct hydns_msg *head, const void *payload, const int *fd,
		       unsigned fds);
/* 0, -EAGAIN, -ECONNRESET at the end of the connection, -EPROTO, or another negative errno. */
int hydns_channel_receive(int sock, struct hydns_channel_message *m);

/* -- requests.c: what other threads ask the link thread to ask hydnsd ------------------------------------ */
enum hydns_request_state { HYDNS_REQUEST_WAITING, HYDNS_REQUEST_SENT, HYDNS_REQUEST_DONE,
			   HYDNS_REQUEST_FAILED };
struct hydns_request {                   /* on its caller's stack, in the list while the caller waits */
	struct hydns_request *next;
	uint64_t id;
	enum hydns_request_state state;
	uint32_t type;                   /* HYDNS_MSG_WITHDRAW, STATS, COOKIES or NOTE */
	struct hydns_withdraw withdraw;
};
struct hydns_requests {
	pthread_mutex_t lock;
	pthread_cond_t done;             /* on CLOCK_MONOTONIC */
	struct hydns_request *first, *last;
	uint64_t next_id;
	bool accepting;                  /* a READY connection */
	int wake;                        /* eventfd: the list is no longer empty, or the end has come */
	struct hydns_counts counts;      /* last known, of the page that hydnsd reads now */
	struct hydns_counts before;      /* of the pages before it */
};
int hydns_requests_init(struct hydns_requests *r);
void hydns_requests_destroy(struct hydns_requests *r);
void hydns_requests_wake(struct hydns_requests *r);
/* Queues and waits at most timeout_ms. True: hydnsd has done it. False: it is FAILED, or late. The request may be on the
 * stack. */
bool hydns_requests_ask(struct hydns_requests *r, struct hydns_request *q, uint32_t timeout_ms);
/* Link thread. Takes a copy of the oldest waiting request and marks it sent; false: none. */
bool hydns_requests_take(struct hydns_requests *r, struct hydns_request *copy);
void hydns_requests_finish(struct hydns_requests *r, uint64_t id, bool done,
			   const struct hydns_counts *counts);
/* Counts that came without a request; those of a page that is no more are kept apart. */
void hydns_requests_take_counts(struct hydns_requests *r, const struct hydns_counts *counts);
void hydns_requests_new_page(struct hydns_requests *r);
/* What is known of all pages together. */
void hydns_requests_counts(struct hydns_requests *r, struct hydns_counts *out);
/* Opens the list, or closes it: then whatever stands in it has failed. */
void hydns_requests_accept(struct hydns_requests *r, bool accepting);

/* -- owed.c: withdrawals that wait for hydnsd --------------------------------------------------------- */
#define HYDNS_OWED_MAX 8                 /* each takes a grace period when hydnsd is back */
#define HYDNS_OWED_ALL UINT32_MAX        /* instead of a name's place */
struct hydns_owed {
	pthread_mutex_t lock;
	unsigned count;
	uint32_t resumed;                /* suspensions that have ended; they are counted from 1 */
	uint32_t quiet;                  /* the last one in which all rules waited and a grace period has passed since */
	struct hydns_withdraw of[HYDNS_OWED_MAX];
};
/* The suspension that a withdrawal was noted in. */
struct hydns_suspension {
	uint32_t number;
	bool quiet;                      /* a grace period has passed since all rules were suspended */
};
void hydns_owed_init(struct hydns_owed *o);
void hydns_owed_destroy(struct hydns_owed *o);
/* Notes it and suspends the rules of this place, or HYDNS_OWED_ALL. False: there are too many, and nothing was done. */
bool hydns_owed_add(struct hydns_owed *o, struct hydns_pages *g, const struct hydns_withdraw *w, uint32_t place,
		    struct hydns_suspension *in);
/* A grace period has passed since _add() has suspended all rules, in this suspension. */
void hydns_owed_quieten(struct hydns_owed *o, uint32_t suspension);
/* Link thread: hydnsd reads another page from now on, whose rules are still to come. Nothing is owed any more, and the
 * suspension of the former page has ended. */
void hydns_owed_forget(struct hydns_owed *o);
/* Link thread: the oldest, and that this one has been done. */
bool hydns_owed_first(struct hydns_owed *o, struct hydns_withdraw *out);
void hydns_owed_done(struct hydns_owed *o, const struct hydns_withdraw *w);
/* Link thread: ends the suspension if nothing is owed. */
bool hydns_owed_resume(struct hydns_owed *o, struct hydns_pages *g);

/* -- leave.c: the end, step by step ------------------------------------------------------------------------ */
enum hydns_left {
	HYDNS_STAYS,
	HYDNS_LEAVES,                    /* all rules are dead, and nothing is offered any more */
	HYDNS_LEFT_SOCKETS,              /* no copy of a listening socket is held */
	HYDNS_LEFT,                      /* no kernel answer is sent any more */
};
struct hydns_leave {
	pthread_mutex_t lock;
	pthread_cond_t further;
	enum hydns_left step;
	int wake;                        /* eventfd: readable from the moment on that the link thread is to end */
	void (*gone)(void *arg);         /* to be called at the last step; NULL: nobody wants to know */
	void *arg;
};
int hydns_leave_init(struct hydns_leave *l);             /* negative errno */
void hydns_leave_destroy(struct hydns_leave *l);
/* Link thread, once p->stopping is set: goes through the steps, the first time that it is called. */
void hydns_leave_go(struct hydns_publish *p);

/* -- left_out.c: names that an answer rests on and its reply does not show ----------------------------- */
#define HYDNS_LEFT_OUT_MAX 1024          /* octets; a rule has less room */
struct hydns_left_out {
	uint16_t len;                    /* octets in use: 0, or those of a block as in struct hydns_rule */
	bool overflow;                   /* some were too many */
	uint8_t block[HYDNS_LEFT_OUT_MAX];
};
void hydns_left_out_clear(struct hydns_left_out *l);
/* name: any case, well-formed. One that is there already is not added. */
void hydns_left_out_add(struct hydns_left_out *l, const uint8_t *name, size_t len);
/* The reply shows this name, which is in lower case. */
void hydns_left_out_strike(struct hydns_left_out *l, const uint8_t *name, size_t len);

/* -- publish.c ------------------------------------------------------------------------------------------- */
struct hydns_thread {
	struct hydns_publish *publish;
	struct hydns_pick pick;          /* of its queries */
	struct hydns_hot hot;            /* the sketch is this thread's */
	struct hydns_producer ring;
	struct hydns_left_out left_out;  /* of the next offer */
	/* Written by this thread, read by the link thread: ring position after the last CHANGED frame; 0: there was none. */
	_Atomic uint32_t changed_head;
} __attribute__((aligned(HYDNS_CACHE_LINE)));

struct hydns_publish {
	struct hydns_publish_options o;  /* strings owned */
	uint64_t seed[2];                /* of its tables' keys; hydnsd is told it */
	struct hydns_pages *pages;
	struct hydns_offered *offered;
	struct hydns_names *names;
	struct hydns_ends *ends;
	struct hydns_subtrees *subtrees; /* NULL: not wanted */
	struct hydns_thread *thread;     /* o.threads of them */
	int doorbell;                    /* its number stays, what it refers to changes with hydnsd */
	_Atomic bool ready;              /* hydnsd has acknowledged READY */
	/* Numbers the times with hydnsd (odd) and without (even). Without hydnsd no rule comes to be, so
	 * what was withdrawn in such an interval stays so to its end. */
	_Atomic uint32_t interval;
	_Atomic uint32_t dead_in;        /* interval in which the epoch was advanced ... */
	_Atomic uint32_t settled_in;     /* ... and a grace period has passed since */
	_Atomic uint32_t session;        /* READY connections that began with an empty store so far */
	_Atomic uint32_t told_in;        /* the last of them in which anything was offered; UINT32_MAX: none */
	_Atomic uint64_t withdrawn;      /* generation of the last withdrawal */
	_Atomic bool closed;             /* for good: no offer is taken, and those taken have an epoch that is over */
	_Atomic bool quiet;              /* and a grace period has passed since */
	_Atomic bool stopping;           /* the link thread is to end; closed is set before */
	_Atomic bool edns_size_told;
	_Atomic bool grace_told;
	bool started;
	pthread_t link;
	struct hydns_publish *former;    /* ended by the link thread before it connects; NULL: none, or done */
	struct hydns_leave leave;
	struct hydns_requests requests;
	struct hydns_owed owed;
	struct hydns_secrets secrets;
	/* configuration, fixed before the start */
	int *service;
	size_t services;
	struct hydns_acl_entry *acl;
	size_t acls;
	struct hydns_notes notes;
};

/* Every rule is dead when it returns, but for programs that run at this moment. */
void hydns_publish_kill_rules(struct hydns_publish *p);
/* As kill, until the link thread has had hydnsd act upon what waits for it; then those that are left count again. */
void hydns_publish_suspend_rules(struct hydns_publish *p);
/* The same for the rules that depend on this name (lower case, well-formed) alone. */
void hydns_publish_touch(struct hydns_publish *p, const uint8_t *name, size_t len);
/* After the rules were killed for good: no kernel answer is sent any more when it returns. Waits for a grace period unless
 * one has passed since. */
void hydns_publish_settle(struct hydns_publish *p);
/* hydnsd is away, and all rules are dead. */
bool hydns_publish_dead(struct hydns_publish *p);

/* -- link.c ------------------------------------------------------------------------------------------------ */
void *hydns_link_main(void *publish);

#endif
