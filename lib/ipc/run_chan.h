/*
 * run_chan - what the sealed vault and sbx-vault-run, which executes programs for it, say.
 *
 * How      SOCK_SEQPACKET, struct ipc_msg, the vault's fd 4. RUN (vault -> runner, with one fd) is
 *          answered by ENDED under its id when the program is over or could not be started.
 *
 *          kind     program is           fd becomes          stdin else
 *          KEYRING  sbx-vault-keyring    stdin and stdout    -
 *          CREDS    systemd-creds        stdin and stdout    -
 *          DOCKER   run.program, get     stdout              args[0], the URL
 *          COMMAND  run.program, args    stdout              /dev/null
 *
 *          The descriptor is one end of a socket pair or pipe whose other end the vault keeps, so no
 *          value ever passes the runner.
 * Trust    The runner executes what the vault names, as the user; the vault believes no output.
 * Limits   RUN_MAX_ARGS, RUN_MAX_RUNS at once, RUN_MAX_MS each. Any violation ends the receiver.
 * See      proto/PROTOCOL.ipc, run_chan_test.c, run_chan_fuzz.c
 */
#pragma once

#include "msg.h"

#define RUN_MAX_PROGRAM 512
#define RUN_MAX_ARG 512
#define RUN_MAX_ARGS 16
#define RUN_MAX_RUNS 32
#define RUN_MAX_MS 120000

enum run_msg { RUN_RUN = 1, RUN_ENDED, RUN_N_MSGS };

enum run_kind { RUN_KEYRING, RUN_CREDS, RUN_DOCKER, RUN_COMMAND, RUN_N_KINDS };

struct run {
	enum run_kind kind;
	uint32_t timeout_ms;	       /* then its process group is killed */
	char program[RUN_MAX_PROGRAM]; /* DOCKER, COMMAND: absolute path; others: "" */
	uint8_t n_args;
	char args[RUN_MAX_ARGS][RUN_MAX_ARG];
};

/* How it ended: an exit status (0 is good), else -ETIMEDOUT, -EINTR (a signal), or why it could
 * not be started. */
int run_send_run(int sock, uint32_t id, const struct run *run, int fd) MUST_CHECK;
int run_send_ended(int sock, uint32_t id, int32_t how) MUST_CHECK;

/* Decoders: 0, or -EBADMSG. RUN leaves the fd in the message. */
int run_get_run(const struct ipc_msg *msg, struct run *ret) MUST_CHECK;
int run_get_ended(const struct ipc_msg *msg, int32_t *ret_how) MUST_CHECK;
