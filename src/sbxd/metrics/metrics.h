/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics - the state of the installation as OpenMetrics text, for a monitoring system.
 *
 * How      metrics_print writes one text from the registry and the tables of the other parts; it
 *          sends no message. Only gauges and summaries are used: these two types have the same form
 *          in OpenMetrics and in the older text format of Prometheus, which promtool and
 *          node_exporter read. Totals are the _count of a summary and begin with this sbxd.
 * Trust    A label is a word of this file, the version, or the id of a running sandbox, which sbxd
 *          chose. Names of sandboxes and texts of guests and keepers are not printed.
 * Limits   METRICS_MAX_SANDBOXES sandboxes have their own series.
 * See      proto/PROTOCOL.api, docs/guides/monitoring.md, tests/api/test_metrics.py
 */
#pragma once

#include "src/sbxd/state/state.h"
#include "lib/base/err.h"

#define METRICS_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define METRICS_MAX_SANDBOXES 256

/* *ret is on the heap. */
int metrics_print(struct sbxd *d, char **ret, struct err *err) MUST_CHECK;
