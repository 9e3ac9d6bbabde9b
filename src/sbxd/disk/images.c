/* SPDX-License-Identifier: Apache-2.0 */
#include "images.h"

#include <errno.h>
#include <string.h>
#include "lib/base/log.h"
#include "lib/base/mem.h"
#include "lib/base/fs/paths.h"
#include "lib/base/str.h"
#include "lib/os/ipc/edge_chan.h"
#include "lib/rules/settings/settings.h"
#include "lib/vm/store/store.h"
#include "lib/vm/template/template.h"
#include "lib/vm/vmm/image/image.h"

#define EXIT_BUSY 75 /* of sbx-keeper --make-image */

void images_init(struct images *im, void (*on_made)(struct sbxd *d))
{
	*im = (struct images){.on_made = on_made, .child.pidfd = -1};
}

static bool is_template(void *arg, const char *id)
{
	return template_exists(id);
}

void images_collect(void)
{
	image_collect(is_template, NULL);
}

static bool are_wanted(void)
{
	AUTO_SETTINGS struct settings set = {0};

	return settings_load(&set, NULL) == 0 &&
	       strcmp(settings_get(&set, SETTINGS_WARM_IMAGES), "true") == 0;
}

static void set_timer(struct sbxd *d, uint64_t ms)
{
	loop_timer_set(&d->loop, &d->images->timer, clock_mono_ms() + ms,
		(struct loop_key){.kind = SBXD_EV_IMAGES_TIMER});
}

static bool is_same(const struct hands_image *a, const struct hands_image *b)
{
	return strcmp(a->template, b->template) == 0 && a->cpus == b->cpus &&
	       a->memory == b->memory && a->disk == b->disk && strcmp(a->accel, b->accel) == 0;
}

void images_want(struct sbxd *d, const char *id, const char *accel)
{
	AUTO_ROW struct store_row row = {0};
	const struct spec *s = &row.spec;

	if (store_get(d->store, id, &row, NULL) == 0)
		images_want_class(d,
			&(struct hands_image){
				.cpus = s->cpus, .memory = s->memory, .disk = s->disk},
			s->template_id[0] ? s->template_id : s->template, accel);
}

void images_want_class(
	struct sbxd *d, const struct hands_image *like, const char *template, const char *accel)
{
	struct images *im = d->images;
	struct hands_image w = *like;
	enum spec_accel known;

	/* A keeper sent this text. */
	if (spec_accel_parse(accel, &known) < 0 || known == SPEC_ACCEL_AUTO)
		return;
	if (im->n == IMAGES_MAX || !are_wanted() ||
		str_copy(w.template, sizeof(w.template), template) < 0 ||
		str_copy(w.accel, sizeof(w.accel), accel) < 0)
		return;
	for (size_t i = 0; i < im->n; i++)
		if (is_same(&im->wishes[i], &w))
			return;
	im->wishes[im->n++] = w;
	if (im->n == 1)
		set_timer(d, IMAGES_DELAY_MS);
}

static int start_maker(struct sbxd *d, const struct hands_image *w, struct err *err)
{
	AUTO_FREE char *log = paths_get(PATHS_STATE, "images.log");
	AUTO_CLOSE int log_fd = child_open_log(log, err);
	struct images *im = d->images;
	int r = log_fd < 0 ? log_fd : hands_maker(w, log_fd, &im->child, err);

	if (r < 0)
		return r;
	if (loop_add(&d->loop, im->child.pidfd, EPOLLIN,
		    (struct loop_key){.kind = SBXD_EV_IMAGES}) < 0) {
		images_done(d);
		return err_set(err, -EIO, "cannot watch the program that creates a snapshot");
	}
	set_timer(d, IMAGES_MS);
	return 0;
}

static void drop_first(struct images *im)
{
	im->n--;
	memmove(&im->wishes[0], &im->wishes[1], im->n * sizeof(im->wishes[0]));
}

void images_on_timer(struct sbxd *d)
{
	struct images *im = d->images;
	struct err err = {0};

	if (im->child.pid) {
		log_warn("creating a snapshot timed out: killed");
		hands_signal(im->child.pidfd, HANDS_KILL_GROUP); /* the exit follows */
		return;
	}
	if (im->n == 0)
		return;
	if (start_maker(d, &im->wishes[0], &err) < 0) {
		log_warn("%s", err.text);
		drop_first(im);
	}
}

static void forget_maker(struct sbxd *d)
{
	if (d->images->child.pidfd >= 0)
		loop_del(&d->loop, d->images->child.pidfd);
	fd_close(&d->images->child.pidfd);
	d->images->child.pid = 0;
	loop_timer_clear(&d->loop, &d->images->timer);
}

void images_on_exit(struct sbxd *d)
{
	struct images *im = d->images;
	struct hands_end end;
	bool busy, ok;

	if (hands_reap(im->child.pid, &end) < 0)
		return;
	forget_maker(d);
	ok = !end.was_killed && end.status == 0;
	busy = !end.was_killed && end.status == EXIT_BUSY;
	if (!ok && !busy)
		log_warn("cannot create a snapshot: see images.log");
	if (!busy)
		drop_first(im);
	if (ok)
		im->on_made(d);
	if (im->n)
		set_timer(d, busy ? IMAGES_AGAIN_MS : IMAGES_DELAY_MS);
}

void images_done(struct sbxd *d)
{
	const struct hands_child *c = &d->images->child;

	if (!c->pid)
		return;
	hands_signal(c->pidfd, HANDS_KILL);
	hands_reap_killed(c);
	forget_maker(d);
}
