/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
#include "hydnsd/capture/pcapng.h"

#include <string.h>

enum { SECTION = 0x0A0D0D0A, INTERFACE = 1, STATISTICS = 5, PACKET = 6 };
enum { END_OF_OPTIONS = 0, COMMENT = 1, SHB_APPLICATION = 4, IF_NAME = 2, IF_TSRESOL = 9, EPB_FLAGS = 2, ISB_RECEIVED = 4,
       ISB_DROPPED = 5 };
#define BYTE_ORDER_MAGIC 0x1A2B3C4DU
#define ETHERNET         1             /* LINKTYPE_ETHERNET */
#define NANOSECONDS      9             /* 10^-9, for IF_TSRESOL */
#define BLOCK_ENDS       12U           /* type and length before the body, length behind it */

static uint32_t padded(uint32_t len)
{
	return (len + 3) & ~3U;
}

static uint32_t option_size(uint32_t len)
{
	return 4 + padded(len);
}

static void put(struct pcapng *p, const void *octets, uint32_t len)
{
	static const uint8_t zeros[4];

	if ((len && fwrite(octets, 1, len, p->out) != len) || fwrite(zeros, 1, padded(len) - len, p->out) != padded(len) - len)
		p->failed = true;
	p->written += padded(len);
}

static void put32(struct pcapng *p, uint32_t word)
{
	put(p, &word, sizeof(word));
}

static void put_option(struct pcapng *p, uint16_t code, const void *value, uint32_t len)
{
	const uint16_t head[2] = {code, (uint16_t)len};

	put(p, head, sizeof(head));
	put(p, value, len);
}

static void begin_block(struct pcapng *p, uint32_t type, uint32_t size)
{
	put32(p, type);
	put32(p, size);
}

/* Options end with one of no length; then the block's size stands once more. */
static void end_block(struct pcapng *p, uint32_t size)
{
	put_option(p, END_OF_OPTIONS, NULL, 0);
	put32(p, size);
}

static void put_time(struct pcapng *p, uint64_t ns)
{
	put32(p, (uint32_t)(ns >> 32));
	put32(p, (uint32_t)ns);
}

void pcapng_begin(struct pcapng *p, FILE *out, const char *application)
{
	uint32_t len = (uint32_t)strlen(application), size = BLOCK_ENDS + 16 + option_size(len) + option_size(0);
	const uint16_t version[2] = {1, 0};
	const uint64_t unknown = UINT64_MAX;

	*p = (struct pcapng){.out = out};
	begin_block(p, SECTION, size);
	put32(p, BYTE_ORDER_MAGIC);
	put(p, version, sizeof(version));
	put(p, &unknown, sizeof(unknown));     /* octets of the section */
	put_option(p, SHB_APPLICATION, application, len);
	end_block(p, size);
}

void pcapng_interface(struct pcapng *p, const char *name, uint32_t snaplen)
{
	uint32_t len = (uint32_t)strlen(name), size = BLOCK_ENDS + 8 + option_size(len) + option_size(1) + option_size(0);
	const uint16_t type[2] = {ETHERNET, 0};
	const uint8_t resolution = NANOSECONDS;

	begin_block(p, INTERFACE, size);
	put(p, type, sizeof(type));
	put32(p, snaplen);
	put_option(p, IF_NAME, name, len);
	put_option(p, IF_TSRESOL, &resolution, 1);
	end_block(p, size);
}

static uint32_t comment_len(const struct pcapng_packet *packet)
{
	return (uint32_t)strnlen(packet->comment, PCAPNG_COMMENT);
}

uint32_t pcapng_packet_size(const struct pcapng_packet *packet)
{
	return BLOCK_ENDS + 20 + padded(packet->len) + option_size(4) + option_size(comment_len(packet)) + option_size(0);
}

void pcapng_packet(struct pcapng *p, const struct pcapng_packet *packet)
{
	uint32_t size = pcapng_packet_size(packet), flags = packet->direction;

	begin_block(p, PACKET, size);
	put32(p, packet->interface);
	put_time(p, packet->at_ns);
	put32(p, packet->len);
	put32(p, packet->whole);
	put(p, packet->octets, packet->len);
	put_option(p, EPB_FLAGS, &flags, sizeof(flags));
	put_option(p, COMMENT, packet->comment, comment_len(packet));
	end_block(p, size);
}

void pcapng_statistics(struct pcapng *p, uint32_t interface, uint64_t at_ns, uint64_t received, uint64_t lost)
{
	uint32_t size = BLOCK_ENDS + 12 + 2 * option_size(8) + option_size(0);

	begin_block(p, STATISTICS, size);
	put32(p, interface);
	put_time(p, at_ns);
	put_option(p, ISB_RECEIVED, &received, sizeof(received));
	put_option(p, ISB_DROPPED, &lost, sizeof(lost));
	end_block(p, size);
}
