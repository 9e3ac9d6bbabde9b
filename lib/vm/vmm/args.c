/* SPDX-License-Identifier: Apache-2.0 */
#include "args.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "lib/base/mem.h"

/* No port I/O window and no old layout; virtiofs knows nothing else anyway. */
#define MODERN "disable-legacy=on"

static void add_args(struct args *a, const char *s)
{
	assert(a->n < ARGS_MAX);
	a->argv[a->n++] = xstrdup(s);
}

static void PRINTF_LIKE(3, 4) add2(struct args *a, const char *option, const char *fmt, ...)
{
	char *value = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&value, fmt, ap) < 0)
		abort();
	va_end(ap);
	add_args(a, option);
	assert(a->n < ARGS_MAX);
	a->argv[a->n++] = value;
}

static void add_mount(struct args *a, const char *from, const char *to, unsigned flags)
{
	assert(a->n_mounts < ARGS_MAX_MOUNTS);
	a->mounts[a->n_mounts++] = (struct jail_mount){.from = from, .to = to, .flags = flags};
}

static void add_fd(struct args *a, int from, enum args_fd to)
{
	assert(a->n_fds < ARGS_MAX_FDS);
	a->fds[a->n_fds++] = (struct jail_fd){.from = from, .to = (int)to};
}

static void add_machine(struct args *a, const struct vmm_config *c)
{
	bool kvm = c->accel == VMM_KVM;

	/* pc: its ACPI hot-plug takes the workspace after a restore. What can be off is off: every
	 * emulated chip is code that the guest can attack. */
	add2(a, "-M",
		"pc,usb=off,vmport=off,i8042=off,smbus=off,hpet=off,smm=off,graphics=off,"
		"dump-guest-core=off,mem-merge=off,memory-backend=ram");
	/* tb-size: qemu's own default is 1 GiB of translated code for each machine. -cx16: QEMU
	 * 7.2 emulates cmpxchg16b wrongly and kernel 6.12 panics in kmalloc. -erms, -fsrm: with
	 * them the guest clears and copies pages by `rep stosb` and `rep movsb`, which emulation
	 * does byte by byte; without, eight bytes at a time: a page fault costs a third. -la57:
	 * a fifth level of page tables only makes every walk longer. Under KVM nested
	 * virtualization and the performance counters are code of the host's kernel. */
	if (kvm)
		add2(a, "-accel", "kvm");
	else
		add2(a, "-accel", "tcg,thread=%s,tb-size=256",
			c->accel == VMM_TCG_PARALLEL ? "multi" : "single");
	add2(a, "-cpu", "%s", kvm ? "host,-vmx,-svm,pmu=off" : "max,-cx16,-erms,-fsrm,-la57");
	add2(a, "-smp", "%u,sockets=1,cores=%u,threads=1", c->cpus, c->cpus);
}

static void add_memory(struct args *a, const struct vmm_config *c)
{
	uint64_t mib = c->memory >> 20;

	add2(a, "-m", "%" PRIu64 "M", mib);
	/* The keeper's file or memfd: it copies the memory when the machine is saved, and fills it
	 * before the machine is restored. An open file and not a memfd of qemu's own, because from
	 * version 8.1 on qemu leaves only named files out of what it saves. share=on: virtiofsd
	 * maps it. */
	add2(a, "-object", "memory-backend-file,id=ram,share=on,mem-path=/fd/%d,size=%" PRIu64 "M",
		ARGS_FD_MEMORY, mib);
	add_mount(a, "/proc/self/fd", "/fd", 0);
	add_fd(a, c->memory_fd, ARGS_FD_MEMORY);
}

static char *kernel_cmdline(const struct vmm_config *c)
{
	static const char *const common =
		/* the console is the ring that is read when a boot fails; only trouble goes there
		 */
		"console=hvc0 quiet"
		/* a panic ends the machine at once, by triple fault: no firmware on the way */
		" panic=-1 reboot=t"
		/* under load the check of the timer interrupt can fail, which is a panic */
		" no_timer_check"
		/* a busy host must not make the guest change to a slow clock */
		" tsc=nowatchdog"
		/* self-tests of ciphers: 0.4 s under TCG, and nothing would act on the result */
		" cryptomgr.notests"
		/* there is no serial port to look for */
		" 8250.nr_uarts=0";
	/* Emulated branches are not the processor's: the guest's mitigations protect nothing under
	 * TCG. Under KVM they stay on. The emulated time stamp counter is measured by loops of the
	 * guest, which a busy host makes wrong by a factor; the ACPI timer has a fixed frequency.
	 * With random addresses QEMU 7.2 spends most of a program's start on translating code that
	 * it had translated before (seen by perf; not found in its source): /bin/true takes four
	 * times as long. */
	const char *accel =
		c->accel != VMM_KVM ? " mitigations=off clocksource=acpi_pm norandmaps" : "";
	const char *extra = c->cmdline_extra ? c->cmdline_extra : "";

	return xasprintf("%s%s%s%s", common, accel, *extra ? " " : "", extra);
}

static void add_kernel(struct args *a, const struct vmm_config *c)
{
	AUTO_FREE char *cmdline = kernel_cmdline(c);

	/* Under one name: a snapshot's key is made of the command line. */
	add_mount(a, c->incoming && c->stub ? c->stub : c->kernel, "/kernel", 0);
	add_mount(a, c->initrd, "/initrd", 0);
	add2(a, "-kernel", "/kernel");
	add2(a, "-initrd", "/initrd");
	add2(a, "-append", "%s", cmdline);
}

const char *args_disk_name(enum vmm_disk_id disk)
{
	static const char *const names[] = {[VMM_ROOT] = "root", [VMM_DOCKER] = "docker"};

	return names[disk];
}

/* Where a file of a disk is in the jail. */
static const char *add_layer_mount(
	struct args *a, const char *name, size_t i, const char *from, unsigned flags)
{
	char *to = xasprintf("/disk/%s.%zu", name, i);

	assert(a->n_names < ARRAY_LEN(a->names));
	a->names[a->n_names++] = to;
	add_mount(a, from, to, flags);
	return to;
}

/* One inside the other from the base up; every file is named here, hence the names recorded in the
 * overlays are ignored. */
static char *lower_layers(struct args *a, const char *name, const struct vmm_disk *d)
{
	char *below = NULL;

	for (size_t i = 0; i + 1 < d->n; i++) {
		const char *to = add_layer_mount(a, name, i, d->files[i], 0);
		AUTO_FREE char *lower = below;

		below = xasprintf("{\"driver\":\"%s\",\"read-only\":true,"
				  "\"file\":{\"driver\":\"file\",\"filename\":\"%s\","
				  "\"aio\":\"threads\",\"read-only\":true,\"locking\":\"on\"}%s%s}",
			i == 0 ? "raw" : "qcow2", to, lower ? ",\"backing\":" : "",
			lower ? lower : "");
	}
	return below;
}

/* Flushes reach the host's disk (no-flush off), so a journal replays cleanly after a kill;
 * otherwise the host's page cache is used, which all sandboxes share for the lower layers.
 * locking=on refuses a second qemu. aio=threads: io_uring is off on many hosts and in the jail. */
static void add_disk(struct args *a, const char *name, const struct vmm_disk *d)
{
	AUTO_FREE char *below = lower_layers(a, name, d);
	const char *top = add_layer_mount(a, name, d->n - 1, d->files[d->n - 1], JAIL_MOUNT_RW);

	add2(a, "-blockdev",
		"{\"driver\":\"qcow2\",\"node-name\":\"%s\",\"discard\":\"unmap\","
		"\"cache\":{\"direct\":false,\"no-flush\":false},"
		"\"file\":{\"driver\":\"file\",\"filename\":\"%s\",\"aio\":\"threads\","
		"\"discard\":\"unmap\",\"locking\":\"on\","
		"\"cache\":{\"direct\":false,\"no-flush\":false}},"
		"\"backing\":%s}",
		name, top, below);
	/* werror=enospc: a full host disk pauses the machine instead of breaking its file system.
	 */
	add2(a, "-device",
		"virtio-blk-pci," MODERN
		",id=%s-disk,drive=%s,iothread=io,werror=enospc,rerror=report",
		name, name);
}

static void add_disks(struct args *a, const struct vmm_config *c)
{
	if (!c->disks[VMM_ROOT].n)
		return;
	/* Disks have a separate thread: a busy disk must not delay the control channel. */
	add2(a, "-object", "iothread,id=io");
	for (enum vmm_disk_id i = 0; i < VMM_N_DISKS; i++) {
		if (c->disks[i].n)
			add_disk(a, args_disk_name(i), &c->disks[i]);
	}
}

static void add_serial(struct args *a, const struct vmm_config *c)
{
	add2(a, "-device", "virtio-serial-pci," MODERN ",id=serial,max_ports=4");
	add2(a, "-chardev", "ringbuf,id=console,size=%d", VMM_CONSOLE_BYTES);
	add2(a, "-device", "virtconsole,chardev=console,nr=0");
	/* Listening, not connected: a new edge can connect when the old one has exited. */
	add2(a, "-chardev", "socket,id=ctl,fd=%d,server=on,wait=off", ARGS_FD_CTL);
	add2(a, "-device", "virtserialport,id=ctl,chardev=ctl,nr=1,name=sbx.ctl");
	add_fd(a, c->ctl_listen_fd, ARGS_FD_CTL);
	if (c->net_listen_fd < 0)
		return;
	add2(a, "-chardev", "socket,id=net,fd=%d,server=on,wait=off", ARGS_FD_NET);
	add2(a, "-device", "virtserialport,id=net,chardev=net,nr=2,name=sbx.net");
	add_fd(a, c->net_listen_fd, ARGS_FD_NET);
}

static void add_share(struct args *a, const struct vmm_config *c)
{
	if (c->share_fd < 0)
		return;
	add2(a, "-chardev", "socket,id=share,fd=%d", ARGS_FD_SHARE);
	add2(a, "-device", "vhost-user-fs-pci,id=share,chardev=share,tag=sbx,queue-size=1024");
	add_fd(a, c->share_fd, ARGS_FD_SHARE);
}

static void add_small_devices(struct args *a)
{
	/* rng-builtin: the host's entropy without a device file. */
	add2(a, "-object", "rng-builtin,id=rng");
	add2(a, "-device", "virtio-rng-pci," MODERN ",rng=rng");
	/* Pages that the guest frees return to the host automatically. */
	add2(a, "-device", "virtio-balloon-pci," MODERN ",free-page-reporting=on");
	/* A new id on every start: a restored guest knows that it must reseed. */
	add2(a, "-device", "vmgenid,guid=auto");
}

static void add_control(struct args *a, const struct vmm_config *c, int qmp_fd)
{
	add2(a, "-chardev", "socket,id=qmp,fd=%d", ARGS_FD_QMP);
	add2(a, "-mon", "chardev=qmp,mode=control");
	add_fd(a, qmp_fd, ARGS_FD_QMP);
	/* Stopped instead of exited, so that the console of a failed boot can still be read. */
	add2(a, "-action", "reboot=shutdown,shutdown=pause,panic=pause");
	add2(a, "-rtc", "base=utc,clock=host");
	if (c->incoming) {
		add2(a, "-incoming", "defer");
		add_args(a, "-S");
	}
}

void args_mount_programs(struct args *a)
{
	/* Only qemu's own file of /usr/bin: it looks for its modules and data by way of the
	 * directory it is in. */
	add_mount(a, ARGS_QEMU, ARGS_QEMU, 0);
	add_mount(a, "/usr/lib", "/usr/lib", 0);
	add_mount(a, "/usr/lib64", "/usr/lib64", JAIL_MOUNT_OPTIONAL);
	add_mount(a, "/lib", "/lib", JAIL_MOUNT_OPTIONAL);
	add_mount(a, "/lib64", "/lib64", JAIL_MOUNT_OPTIONAL);
	add_mount(a, "/etc/ld.so.cache", "/etc/ld.so.cache", JAIL_MOUNT_OPTIONAL);
	add_mount(a, "/usr/share/qemu", "/usr/share/qemu", 0);
	add_mount(a, "/usr/share/seabios", "/usr/share/seabios", JAIL_MOUNT_OPTIONAL);
	add_mount(a, "/dev/null", "/dev/null", JAIL_MOUNT_RW | JAIL_MOUNT_DEV);
}

static int check_disks(const struct vmm_config *c, struct err *err)
{
	for (enum vmm_disk_id i = 0; i < VMM_N_DISKS; i++) {
		const struct vmm_disk *d = &c->disks[i];

		if (d->n == 1 || d->n > VMM_MAX_LAYERS)
			return err_set(err, -EINVAL,
				"invalid disk of %zu files: expected a base and overlays, at most %d files",
				d->n, VMM_MAX_LAYERS);
		for (size_t j = 0; j < d->n; j++) {
			if (!d->files[j])
				return err_set(err, -EINVAL, "a file of a disk is missing");
		}
	}
	if (c->disks[VMM_DOCKER].n && !c->disks[VMM_ROOT].n)
		return err_set(err, -EINVAL, "the docker disk requires a root disk");
	return 0;
}

static int check_config(const struct vmm_config *c, struct err *err)
{
	const char *extra = c->cmdline_extra ? c->cmdline_extra : "";

	if (!c->kernel || !c->initrd || c->ctl_listen_fd < 0)
		return err_set(err, -EINVAL, "a VM requires a kernel, an initrd and sbx.ctl");
	if (c->incoming && c->share_fd >= 0)
		return err_set(err, -EINVAL, "a restored VM cannot begin with a share");
	if (c->cpus < 1 || c->cpus > VMM_MAX_CPUS)
		return err_set(err, -EINVAL, "invalid number of CPUs %u: expected 1 to %d", c->cpus,
			VMM_MAX_CPUS);
	if (c->memory < VMM_MIN_MEMORY || c->memory & ((1 << 20) - 1))
		return err_set(err, -EINVAL,
			"invalid memory size of %" PRIu64
			" bytes: expected whole MiB, at least %llu",
			c->memory, VMM_MIN_MEMORY >> 20);
	if (strlen(extra) > VMM_MAX_CMDLINE)
		return err_set(err, -EINVAL, "the kernel command line is longer than %d bytes",
			VMM_MAX_CMDLINE);
	for (const char *p = extra; *p; p++) {
		if (*p < 0x20 || *p > 0x7e)
			return err_set(err, -EINVAL,
				"the kernel command line contains a control character");
	}
	return check_disks(c, err);
}

int args_build(struct args *a, const struct vmm_config *c, int qmp_fd, struct err *err)
{
	int r;

	*a = (struct args){};
	r = check_config(c, err);
	if (r < 0)
		return r;
	add_args(a, "qemu-system-x86_64");
	add_args(a, "-nodefaults");
	add_args(a, "-no-user-config");
	add2(a, "-display", "none");
	add2(a, "-msg", "timestamp=off");
	add_machine(a, c);
	add_memory(a, c);
	add_kernel(a, c);
	add_control(a, c, qmp_fd);
	add_serial(a, c);
	add_disks(a, c);
	add_small_devices(a);
	/* Last: without it all others have the same places, so that memory saved without it
	 * fits. */
	add_share(a, c);
	add2(a, "-sandbox",
		"on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
	args_mount_programs(a);
	if (c->accel == VMM_KVM)
		add_mount(a, "/dev/kvm", "/dev/kvm", JAIL_MOUNT_RW | JAIL_MOUNT_DEV);
	return 0;
}

void args_done(struct args *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(TAKE(a->argv[i]));
	for (size_t i = 0; i < a->n_names; i++)
		free(TAKE(a->names[i]));
	a->n = a->n_names = 0;
}
