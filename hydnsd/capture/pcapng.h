/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Writes pcap-ng (draft-ietf-opsawg-pcapng): one section of Ethernet interfaces, in this machine's byte order. libpcap reads the
 * format and does not write it.
 */
#ifndef HYDNSD_CAPTURE_PCAPNG_H
#define HYDNSD_CAPTURE_PCAPNG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define PCAPNG_COMMENT 4000            /* most octets of a comment; the rest is cut */

struct pcapng {
	FILE *out;
	uint64_t written;              /* octets so far */
	bool failed;                   /* a write has; errno said why */
};

enum pcapng_direction { PCAPNG_INBOUND = 1, PCAPNG_OUTBOUND = 2 };

struct pcapng_packet {
	uint32_t interface;            /* in the order of pcapng_interface(), from 0 on */
	uint64_t at_ns;                /* of the wall clock */
	const void *octets;
	uint32_t len;                  /* octets that are kept ... */
	uint32_t whole;                /* ... of so many */
	enum pcapng_direction direction;
	const char *comment;
};

/* Begins the file. */
void pcapng_begin(struct pcapng *p, FILE *out, const char *application);
/* snaplen: most octets of a packet that are kept. */
void pcapng_interface(struct pcapng *p, const char *name, uint32_t snaplen);
void pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet);
/* Octets that pcapng_packet() would write. */
uint32_t pcapng_packet_size(const struct pcapng_packet *packet);
/* At the end, of an interface: packets that were written, and that were lost for want of room. */
void pcapng_statistics(struct pcapng *p, uint32_t interface, uint64_t at_ns, uint64_t received, uint64_t lost);

#endif
