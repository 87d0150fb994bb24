/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* doctor: the kernel and what it allows. */
#include "config.h"

#include <cap-ng.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hydnsd/doctor/doctor.h"

/* The oldest kernel that the program is tested on. */
#define KERNEL_MAJOR 6
#define KERNEL_MINOR 1

static void check_kernel(struct doctor *d)
{
	struct utsname u;
	unsigned major = 0, minor = 0;

	uname(&u);
	if (sscanf(u.release, "%u.%u", &major, &minor) != 2)
		doctor_add(d, "kernel", NULL, DOCTOR_SKIP, NULL, "cannot read a version from '%s'", u.release);
	else if (major < KERNEL_MAJOR || (major == KERNEL_MAJOR && minor < KERNEL_MINOR))
		doctor_add(d, "kernel", NULL, DOCTOR_FAIL, "apt install linux-image-amd64, and boot it (Debian 12 or later)",
			   "Linux %s; hydnsd needs %u.%u or newer", u.release, KERNEL_MAJOR, KERNEL_MINOR);
	else
		doctor_add(d, "kernel", NULL, DOCTOR_OK, NULL, "Linux %s", u.release);
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		doctor_add(d, "btf", NULL, DOCTOR_FAIL, "apt install linux-image-amd64, and boot it: a kernel with "
			   "CONFIG_DEBUG_INFO_BTF=y, as all large distributions' are", "no /sys/kernel/btf/vmlinux: %s", strerror(errno));
	else
		doctor_add(d, "btf", NULL, DOCTOR_OK, NULL, "the kernel describes its types");
}

static void check_jit(struct doctor *d)
{
	char v[16];
	int err = doctor_read_line("/proc/sys/net/core/bpf_jit_enable", v, sizeof(v));

	if (err)
		doctor_add(d, "jit", NULL, DOCTOR_SKIP, NULL, "bpf_jit_enable cannot be read (%s): it is visible "
			   "in the initial network namespace only", strerror(-err));
	else if (v[0] == '0')
		doctor_add(d, "jit", NULL, DOCTOR_FAIL, "sysctl -w net.core.bpf_jit_enable=1; systemctl restart hydnsd",
			   "the BPF JIT is off: the program would be interpreted, several times slower");
	else
		doctor_add(d, "jit", NULL, DOCTOR_OK, NULL, "the BPF JIT is on");
	err = doctor_read_line("/proc/sys/kernel/unprivileged_bpf_disabled", v, sizeof(v));
	if (err)
		doctor_add(d, "unprivileged-bpf", NULL, DOCTOR_SKIP, NULL, "cannot be read: %s", strerror(-err));
	else if (v[0] == '0')
		doctor_add(d, "unprivileged-bpf", NULL, DOCTOR_WARN,
			   "sysctl -w kernel.unprivileged_bpf_disabled=2; echo kernel.unprivileged_bpf_disabled=2 "
			   ">/etc/sysctl.d/unprivileged-bpf.conf",
			   "every user may load BPF programs; hydnsd does not need that");
	else
		doctor_add(d, "unprivileged-bpf", NULL, DOCTOR_OK, NULL, "only privileged processes may load BPF");
}

/* The file system of the pin directory, or of the nearest directory above it that exists. */
static void check_bpffs(struct doctor *d)
{
	char path[256];
	struct statfs fs;
	char *slash;

	snprintf(path, sizeof(path), "%s", d->ctl->pin_dir);
	while (statfs(path, &fs)) {
		slash = strrchr(path, '/');
		if (errno == EACCES || !slash || !slash[1]) {
			doctor_add(d, "bpffs", NULL, DOCTOR_SKIP, NULL, "cannot look at %s: %s",
				   d->ctl->pin_dir, strerror(errno));
			return;
		}
		slash[slash == path] = 0;              /* the root keeps its own */
	}
	if (fs.f_type == BPF_FS_MAGIC)
		doctor_add(d, "bpffs", NULL, DOCTOR_OK, NULL, "%s is in a bpffs", d->ctl->pin_dir);
	else
		doctor_add(d, "bpffs", NULL, DOCTOR_FAIL, "mount -t bpf bpf /sys/fs/bpf ('ip netns exec' hides it: "
			   "enter namespaces with nsenter --net=/run/netns/NAME)",
			   "%s is not in a bpffs, so nothing can be pinned", d->ctl->pin_dir);
}

static void check_rights(struct doctor *d)
{
	bool bpf = capng_have_capability(CAPNG_EFFECTIVE, CAP_BPF) ||
		capng_have_capability(CAPNG_EFFECTIVE, CAP_SYS_ADMIN);
	bool net = capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_ADMIN);

	if (bpf && net)
		doctor_add(d, "rights", NULL, DOCTOR_OK, NULL, "CAP_BPF and CAP_NET_ADMIN are here");
	else
		doctor_add(d, "rights", NULL, DOCTOR_WARN, "run doctor as root",
			   "this process lacks %s%s%s: part of the checks cannot see what they should",
			   bpf ? "" : "CAP_BPF", bpf || net ? "" : " and ", net ? "" : "CAP_NET_ADMIN");
}

/* Since 5.11 BPF memory is charged to the memory cgroup; RLIMIT_MEMLOCK does not limit it. */
static void check_memory(struct doctor *d)
{
	char path[512], line[256], limit[64], text[CTL_TEXT], used[CTL_TEXT];
	double bytes = ctl_real(d->status, FIELD(status, memory_bytes));

	if (!d->status) {
		doctor_add(d, "memory", NULL, DOCTOR_SKIP, NULL, "no hydnsd to ask; its BPF maps will be charged "
			   "to its memory cgroup (RLIMIT_MEMLOCK does not count on this kernel)");
		return;
	}
	snprintf(path, sizeof(path), "/proc/%" JSON_INTEGER_FORMAT "/cgroup", ctl_int(d->status, FIELD(status, pid)));
	if (doctor_read_line(path, line, sizeof(line)) || strncmp(line, "0::", 3)) {
		doctor_add(d, "memory", NULL, DOCTOR_SKIP, NULL, "hydnsd's memory cgroup cannot be seen");
		return;
	}
	snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.max", line + 3);
	if (doctor_read_line(path, limit, sizeof(limit)) || !strcmp(limit, "max"))
		doctor_add(d, "memory", NULL, DOCTOR_OK, NULL, "%s of BPF maps, no limit of hydnsd's own cgroup",
			   ctl_bytes(bytes, used));
	else if (strtod(limit, NULL) < 2 * bytes)
		doctor_add(d, "memory", NULL, DOCTOR_WARN, "systemctl set-property hydnsd MemoryMax=2G; or lower capacity in "
			   "hydnsd.conf",
			   "%s of BPF maps with a limit of %s: a larger capacity may fail to load",
			   ctl_bytes(bytes, used), ctl_bytes(strtod(limit, NULL), text));
	else
		doctor_add(d, "memory", NULL, DOCTOR_OK, NULL, "%s of BPF maps, limit %s", ctl_bytes(bytes, used),
			   ctl_bytes(strtod(limit, NULL), text));
}

static void check_clock(struct doctor *d)
{
	static const char *const slow[] = {"hpet", "acpi_pm", "jiffies", "refined-jiffies"};
	struct timex tx = {0};
	char source[64];
	int state;

	if (doctor_read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
			     sizeof(source))) {
		doctor_add(d, "clock-source", NULL, DOCTOR_SKIP, NULL, "cannot be read");
	} else {
		unsigned i = 0;

		while (i < sizeof(slow) / sizeof(slow[0]) && strcmp(slow[i], source))
			i++;
		if (i < sizeof(slow) / sizeof(slow[0]))
			doctor_add(d, "clock-source", NULL, DOCTOR_WARN, "find out why the kernel gave up the TSC "
				   "(dmesg | grep -i clocksource)", "%s: each reading of the clock is slow", source);
		else
			doctor_add(d, "clock-source", NULL, DOCTOR_OK, NULL, "%s", source);
	}
	state = adjtimex(&tx);
	if (state < 0)
		doctor_add(d, "clock-step", NULL, DOCTOR_SKIP, NULL, "adjtimex: %s", strerror(errno));
	else if (state == TIME_ERROR || (tx.status & STA_UNSYNC))
		doctor_add(d, "clock-step", NULL, DOCTOR_WARN, "apt install chrony, or another NTP client that slews the clock "
			   "(chrony's default but for the start)",
			   "the clock is not disciplined: when it is stepped, all rules are withdrawn once");
	else
		doctor_add(d, "clock-step", NULL, DOCTOR_OK, NULL, "the clock is kept by NTP");
}

void doctor_check_host(struct doctor *d)
{
	check_kernel(d);
	check_jit(d);
	check_bpffs(d);
	check_rights(d);
	check_memory(d);
	check_clock(d);
}
