/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/secret/secret/extract.h"
#include "lib/secret/secret/keyring.h"
#include "vault.h"

/* The runner kills late programs; if the runner is silent too, the job ends after this. */
#define GRACE_MS 5000

static struct loop_key key_of(const struct vault *v, const struct job *j, enum vault_ev kind)
{
	return (struct loop_key){
		.kind = (uint8_t)kind, .gen = j->gen, .idx = (uint32_t)(j - v->jobs)};
}

static void close_pipe(struct vault *v, struct job *j)
{
	if (j->fd >= 0)
		loop_del(&v->loop, j->fd);
	fd_close(&j->fd);
}

static void end_job(struct vault *v, struct job *j)
{
	uint32_t gen = j->gen;

	loop_timer_clear(&v->loop, &j->timer);
	close_pipe(v, j);
	secret_done(&j->out);
	*j = (struct job){.fd = -1, .gen = gen + 1};
}

/* Third-party programs expect a pipe; ours and systemd-creds are also written to. */
static int make_ends(const struct run *run, int *ret_ours, int *ret_theirs)
{
	int fds[2];

	if (run->kind == RUN_REF) {
		if (pipe2(fds, O_CLOEXEC) < 0)
			return -errno;
	} else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0) {
		return -errno;
	}
	*ret_ours = fds[0];
	*ret_theirs = fds[1];
	return fd_set_nonblock(fds[0], true);
}

/* The input is small and the socket is empty: one send is enough. */
static int give_input(int fd, struct slice input)
{
	if (!input.n)
		return 0;
	if (send(fd, input.p, input.n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)input.n)
		return -EIO;
	return shutdown(fd, SHUT_WR) < 0 ? -errno : 0;
}

static int begin_job(struct vault *v, struct job *j, const struct run *run, struct slice input)
{
	AUTO_CLOSE int theirs = -1;
	int r = make_ends(run, &j->fd, &theirs);

	if (r == 0)
		r = give_input(j->fd, input);
	if (r == 0)
		r = run_send_run(VAULT_RUN_FD, j->run_id, run, theirs);
	if (r == 0)
		r = loop_add(&v->loop, j->fd, EPOLLIN, key_of(v, j, EV_JOB));
	if (r < 0)
		fd_close(&j->fd); /* not in the loop yet */
	return r;
}

int job_start(struct vault *v, enum job_kind kind, const struct run *run, struct slice input,
	uint64_t serial, struct err *err)
{
	struct job *j = NULL;
	int r;

	for (size_t i = 0; i < MAX_JOBS && !j; i++) {
		if (v->jobs[i].kind == JOB_FREE)
			j = &v->jobs[i];
	}
	if (!j)
		return err_set(err, -EBUSY, "too many credential programs are running: try again");
	*j = (struct job){.kind = kind,
		.gen = j->gen,
		.run_id = ++v->last_run_id,
		.fd = -1,
		.serial = serial};
	r = secret_init(&j->out, kind == JOB_FETCH ? MAX_OUTPUT : 16384, err);
	if (r == 0) {
		vault_note_memory(v, &j->out);
		r = begin_job(v, j, run, input);
	}
	if (r < 0) {
		end_job(v, j);
		return err_errno(err, r, "cannot start a program");
	}
	loop_timer_set(&v->loop, &j->timer, clock_mono_ms() + run->timeout_ms + GRACE_MS,
		key_of(v, j, EV_JOB_TIMER));
	return 0;
}

bool job_is_fetching(const struct vault *v, uint64_t serial)
{
	for (size_t i = 0; i < MAX_JOBS; i++) {
		if (v->jobs[i].kind == JOB_FETCH && v->jobs[i].serial == serial)
			return true;
	}
	return false;
}

int job_fetch(struct vault *v, struct book_entry *e, struct err *err)
{
	const struct run run = {
		.kind = RUN_REF, .timeout_ms = FETCH_TIMEOUT_MS, .serial = e->serial};

	return job_start(v, JOB_FETCH, &run, slice_of(NULL, 0), e->serial, err);
}

static int explain_exit(const struct job *j, int how, struct err *err)
{
	if (j->is_too_long)
		return err_set(err, -EMSGSIZE, "the output is too large");
	if (how == -ETIMEDOUT)
		return err_set(err, how, "timed out after %d s", FETCH_TIMEOUT_MS / 1000);
	if (how == -EINTR)
		return err_set(err, -EIO, "the program was killed");
	if (how == -EPERM)
		return err_set(err, how,
			"the program is not registered or another user can modify it: set the "
			"credential again");
	if (how < 0)
		return err_errno(err, how, "cannot start the program");
	return how ? err_set(err, -EIO, "the program exited with status %d", how) : 0;
}

static void finish_fetch(struct vault *v, struct job *j, int how)
{
	struct book_entry *e = book_by_serial(&v->book, j->serial);
	struct err err = {0};
	int r;

	if (!e) /* removed or replaced meanwhile */
		return;
	r = explain_exit(j, how, &err);
	if (r == 0)
		r = extract_value(&j->out, e->ref.kind, e->user, &err);
	if (r == 0 && !book_has_room(&v->book, j->out.n))
		r = err_set(&err, -ENOSPC, "the vault is full");
	if (r < 0) {
		(void)err_wrap(&err, r, "%s", e->ref.program);
		op_on_fetched(v, j->serial, r, err_text(&err, r));
		return;
	}
	secret_done(&e->value);
	r = secret_copy(&e->value, secret_slice(&j->out), &err);
	e->fetched_ms = clock_mono_ms();
	op_on_fetched(v, j->serial, r, err_text(&err, r));
	/* refresh on-demand: the value is not kept */
	if (e->ref.refresh_s == 0)
		secret_done(&e->value);
}

/* Reads the available output. */
static void read_output(struct vault *v, struct job *j)
{
	for (unsigned i = 0; i < 64 && j->fd >= 0; i++) {
		size_t room = j->out.size - j->out.n;
		ssize_t n = room ? read(j->fd, j->out.p + j->out.n, room) : 0;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			j->is_too_long = room == 0;
			close_pipe(v, j);
			return;
		}
		j->out.n += (size_t)n;
	}
}

static void finish_job(struct vault *v, struct job *j, int how)
{
	read_output(v, j);
	if (j->kind == JOB_FETCH)
		finish_fetch(v, j, how);
	else
		open_on_job(v, j, j->is_too_long ? -EMSGSIZE : how);
	end_job(v, j);
}

void job_on_event(struct vault *v, const struct loop_event *ev)
{
	struct job *j = &v->jobs[ev->key.idx];

	if (j->gen == ev->key.gen && j->kind != JOB_FREE && j->fd >= 0)
		read_output(v, j);
}

void job_on_timer(struct vault *v, struct loop_key key)
{
	struct job *j = &v->jobs[key.idx];

	if (j->gen == key.gen && j->kind != JOB_FREE)
		finish_job(v, j, -ETIMEDOUT);
}

void job_on_runner(struct vault *v)
{
	static struct ipc_msg msg;
	int32_t how;
	int r;

	msg.fd = -1;
	r = ipc_recv(VAULT_RUN_FD, &msg);
	if (r == -EAGAIN)
		return;
	if (r > 0)
		r = run_get_ended(&msg, &how) < 0 ? -EBADMSG : 1;
	ipc_msg_done(&msg);
	if (r <= 0) {
		if (r < 0)
			log_error("protocol error: invalid message from sbx-vault-run");
		v->done = true;
		v->status = r < 0 ? 4 : 0;
		return;
	}
	for (size_t i = 0; i < MAX_JOBS; i++) {
		if (v->jobs[i].kind != JOB_FREE && v->jobs[i].run_id == msg.id)
			finish_job(v, &v->jobs[i], how);
	}
}
