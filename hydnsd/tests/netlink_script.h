/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The kernel's side of rtnetlink, from a script. The readers of addresses, routes, settings and links run as they are; send(),
 * recvfrom() and the clock are those of netlink_script.c (ld's --wrap), and so is what the readers call of the daemon.
 */
#ifndef HYDNSD_TESTS_NETLINK_SCRIPT_H
#define HYDNSD_TESTS_NETLINK_SCRIPT_H

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL   0                     /* who sends */
#define STRANGER 4711
#define AS_ASKED UINT32_MAX            /* the sequence number of the last request */
#define SCRIPT   64                    /* datagrams at most */

extern unsigned requests;              /* sent so far */
extern bool changing;                  /* the host changes all the time: every dump after the script is interrupted */
extern uint64_t now_ms;

/* Each test's setup: an empty script. */
int begin_script(void **state);

/* -- datagrams, in the order in which they are received -- */
void datagram_from(uint32_t sender);
/* recvfrom() fails with this. */
void failure(int error);
/* Adds a message to the last datagram; returns it, for attributes. */
struct nlmsghdr *message(uint16_t type, uint16_t flags, uint32_t seq, const void *body, size_t len);
void done_as(int error, uint32_t seq);
void done(void);
/* A datagram: a whole dump without messages. */
void nothing(void);
/* A datagram: the kernel refuses the request. */
void refusal(int error);

/* -- messages -- */
void route(const char *to, uint8_t bits, uint8_t type, uint32_t table, uint32_t device, uint16_t flags, uint32_t seq);
void local(const char *to);
void rule(int family, uint32_t table, uint16_t flags);
/* kind: of a virtual link. master, lower: 0: none. */
void link_of(unsigned index, const char *name, const char *kind, unsigned master, unsigned lower);
void setting(int index, uint32_t rp_filter);
/* A dump: the loopback interface, of a kind behind which tags are not seen, and a link of this kind above it. */
void links_with(const char *kind);

/* -- what the readers call of the daemon -- */
extern void (*heard)(void *arg, uint32_t events); /* of the socket that is watched */
extern void *heard_arg;
extern unsigned attached, detached;    /* attempts */
extern unsigned parking_left;          /* calls of hydnsd_parking_leave() */
extern unsigned parks_at;              /* interface whose queries may be parked; 0: none */
extern int attach_rc;                  /* of the next ones */

#endif
