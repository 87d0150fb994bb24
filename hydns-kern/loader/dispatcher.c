/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shares an interface with other XDP programs through libxdp's dispatcher, which calls one program
 * after the other as long as they pass. libxdp loads each as an extension program of the
 * dispatcher, so each interface gets a copy of ours, over the same maps. The kernel demands more rights for
 * that (CAP_PERFMON, CAP_SYS_ADMIN): attach before giving rights up.
 *
 * A pin shared_<ifname>, made first and removed last, marks interfaces that may have a copy. A copy is recognized by the
 * program's name, so one left by a crash is found too.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <net/if.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "hydns-kern/loader/kern.h"

#ifdef HAVE_LIBXDP
#include <xdp/libxdp.h>

static int quiet(enum libxdp_print_level level, const char *fmt, va_list ap)
{
	(void)level, (void)fmt, (void)ap;
	return 0;
}

/* The verifier has said so of ours, in the place of a function of the dispatcher that changes none: newer kernels, Debian's 6.12 among
 * them, tell one from the other, and the dispatcher of Debian 12's libxdp does not. */
static _Thread_local bool changes_packets;

static int look_for_reason(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	char said[512];

	(void)level;
	vsnprintf(said, sizeof(said), fmt, ap);
	changes_packets |= strstr(said, "changes packet data") != NULL;
	return 0;
}

static int attach_program(struct xdp_program *p, int ifindex)
{
	libbpf_print_fn_t before = libbpf_set_print(look_for_reason);
	int err;

	changes_packets = false;
	err = xdp_program__attach(p, ifindex, XDP_MODE_UNSPEC, 0);
	libbpf_set_print(before);
	return err;
}

/* Removes every copy of ours, except the one with id keep, from the interface's dispatcher. */
static int copies_remove(int ifindex, __u32 keep, char why[HYDNS_WHY])
{
	struct xdp_multiprog *all;
	struct xdp_program *p = NULL;
	int err = 0;

	all = xdp_multiprog__get_from_ifindex(ifindex);
	err = (int)libxdp_get_error(all);
	if (err == -ENOENT)
		return 0;              /* nothing is attached */
	if (err)
		return hydns_fail(why, err, "can't read which programs the dispatcher calls: %s", strerror(-err));
	while (!err && (p = xdp_multiprog__next_prog(p, all)))
		if (xdp_program__id(p) != keep && !strcmp(xdp_program__name(p), HYDNS_PROGRAM))
			err = xdp_program__detach(p, ifindex, xdp_multiprog__attach_mode(all), 0);
	xdp_multiprog__close(all);
	if (err)
		return hydns_fail(why, err, "can't leave the dispatcher: %s", strerror(-err));
	return 0;
}

/*
 * Where the kernel refuses extension programs, libxdp attaches the program without a dispatcher and reports success. Such an
 * attachment keeps other programs out and has no pin: undo it.
 */
static int undo_lone_attachment(const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	struct xdp_multiprog *all = xdp_multiprog__get_from_ifindex(ifindex);
	bool lone;
	int err = (int)libxdp_get_error(all);

	if (err)
		return hydns_fail(why, err, "%s: can't read back what is attached: %s", ifname,
				  strerror(-err));
	lone = xdp_multiprog__is_legacy(all);
	if (lone)
		err = xdp_multiprog__detach(all);
	xdp_multiprog__close(all);
	if (!lone)
		return 0;
	if (err)
		return hydns_fail(why, err, "%s: libxdp attached the program without its dispatcher, and it "
				  "can't be detached: %s", ifname, strerror(-err));
	return hydns_fail(why, -EOPNOTSUPP, "%s: libxdp's dispatcher does not work on this kernel (it "
			  "needs extension programs, BPF_PROG_TYPE_EXT): use mode native or generic", ifname);
}

/* libxdp reads back what it has attached, which takes CAP_SYS_ADMIN: without, it would leave what nobody can detach. */
static int check_rights(const char *ifname, char why[HYDNS_WHY])
{
	__u32 id;

	if (bpf_prog_get_next_id(0, &id) && errno == EPERM)
		return hydns_fail(why, -EPERM, "%s: mode dispatcher needs CAP_SYS_ADMIN, which the unit does not give: "
				  "\"Other XDP programs\" in doc/interfaces.md says how", ifname);
	return 0;
}

static int copy_attach(struct hydns_bpf *copy, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	DECLARE_LIBXDP_OPTS(xdp_program_opts, opts, .obj = copy->obj, .prog_name = HYDNS_PROGRAM);
	struct xdp_program *p = xdp_program__create(&opts);
	char text[128];
	int err = (int)libxdp_get_error(p);

	if (err)
		return hydns_fail(why, err, "%s: libxdp can't use the program: %s", ifname,
				  strerror(-err));
	err = attach_program(p, ifindex);
	if (err && changes_packets) {
		err = hydns_fail(why, -EOPNOTSUPP, "%s: on this kernel the dispatcher of this libxdp can't call a program that changes "
				 "packets: use mode native or generic, or a newer libxdp", ifname);
	} else if (err) {
		libxdp_strerror(err, text, sizeof(text));
		err = hydns_fail(why, err, "%s: libxdp's dispatcher can't be attached: %s; if an XDP "
				 "program is attached without it, detach that one (ip link set dev %s xdp "
				 "off)", ifname, text, ifname);
	} else {
		err = undo_lone_attachment(ifname, ifindex, why);
	}
	if (!err)
		err = copies_remove(ifindex, xdp_program__id(p), why);
	xdp_program__close(p);
	return err;
}

static bool marked(const char *pin_dir, const char *ifname, char path[PATH_MAX])
{
	return !hydns_pin_path(path, pin_dir, HYDNS_PIN_DISPATCHED, ifname) && !access(path, F_OK);
}

int hydns_dispatcher_attach(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	struct hydns_bpf *copy;
	char path[PATH_MAX];
	bool before = marked(k->pin_dir, ifname, path);
	int err = check_rights(ifname, why);

	if (err)
		return err;
	libxdp_set_print(quiet);
	/* One PROG_ARRAY can't hold stages for extension programs and ordinary ones: a copy calls no stage. */
	copy = hydns_copy_open(k->skel, HYDNS_HOOK_XDP, false);
	if (!copy)
		return hydns_fail(why, -ENOMEM, "%s: can't copy the program for the dispatcher", ifname);
	err = hydns_pin_replace(hydns_kern_prog_fd(k), k->pin_dir, HYDNS_PIN_DISPATCHED, ifname);
	if (err) {
		hydns_fail(why, err, "%s: can't pin in %s: %s", ifname, k->pin_dir_named, strerror(-err));
	} else {
		err = copy_attach(copy, ifname, ifindex, why);
		if (err && !before)
			unlink(path);
	}
	hydns_bpf__destroy(copy);
	return err;
}

int hydns_dispatcher_exchange(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	char path[PATH_MAX];

	return marked(k->pin_dir, ifname, path) ? hydns_dispatcher_attach(k, ifname, ifindex, why) : 0;
}

int hydns_dispatcher_detach(const char *pin_dir, const char *ifname, char why[HYDNS_WHY])
{
	char path[PATH_MAX];
	int ifindex, err = 0;

	if (!marked(pin_dir, ifname, path))
		return 0;
	libxdp_set_print(quiet);
	ifindex = hydns_pinned_ifindex(ifname);
	if (ifindex)
		err = copies_remove(ifindex, 0, why);
	if (!err && unlink(path) && errno != ENOENT)
		err = hydns_fail(why, -errno, "can't remove %s: %s", path, strerror(errno));
	return err;
}

#else /* without libxdp */

int hydns_dispatcher_exchange(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	(void)k, (void)ifname, (void)ifindex, (void)why;
	return 0;
}

int hydns_dispatcher_attach(struct hydns_kern *k, const char *ifname, int ifindex, char why[HYDNS_WHY])
{
	(void)k, (void)ifindex;
	return hydns_fail(why, -ENOTSUP, "%s: this hydnsd was built without libxdp: rebuild it with "
			  "--with-libxdp=yes, or use mode native or generic", ifname);
}

int hydns_dispatcher_detach(const char *pin_dir, const char *ifname, char why[HYDNS_WHY])
{
	char path[PATH_MAX];

	if (hydns_pin_path(path, pin_dir, HYDNS_PIN_DISPATCHED, ifname) || access(path, F_OK))
		return 0;
	return hydns_fail(why, -ENOTSUP, "%s is attached through libxdp, and this hydnsd was built without "
			  "it: detach with xdp-loader unload", ifname);
}

#endif
