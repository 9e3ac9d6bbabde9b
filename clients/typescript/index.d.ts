// SPDX-License-Identifier: Apache-2.0
/** Names of fields are those of proto/PROTOCOL.api. */
export type Json = Record<string, unknown>;

export interface Sandbox extends Json {
  id: string;
  name: string;
  agent: string;
  status: "stopped" | "suspended" | "starting" | "running" | "paused" | "stopping" | "unresponsive";
}

export interface Event extends Json {
  seq: number;
  type: "snapshot" | "live" | "changed" | "removed" | "hold" | "unhold";
  sandbox?: Partial<Sandbox>;
  hold?: Json;
}

/** An error of sbxd. */
export class SbxError extends Error {
  readonly status: number;
  readonly code: string;
  readonly hint: string;
}

/** An exec stream that ended without EXIT, or a program that could not be started (126, 127). */
export class StreamError extends Error {
  readonly status?: number;
}

/** `status`: the exit status, or 128 + the signal that killed the program. */
export interface Result {
  status: number;
  stdout: Buffer;
  stderr: Buffer;
}

export interface ExecOptions {
  /** The program gets what is written; default: it has no stdin. */
  stdin?: boolean;
  tty?: boolean;
  user?: string;
  cwd?: string;
  env?: Record<string, string>;
  rows?: number;
  columns?: number;
}

/** A program in a sandbox. Iterate for [1, stdout] and [2, stderr]; then `status` is set. */
export class Process implements AsyncIterable<[1 | 2, Buffer]> {
  readonly pid?: number;
  readonly status?: number;
  write(data: Uint8Array | string): Promise<void>;
  closeStdin(): Promise<void>;
  signal(number: number): Promise<void>;
  resize(rows: number, columns: number): Promise<void>;
  wait(): Promise<Result>;
  /** A program that still runs gets SIGHUP. */
  close(): void;
  [Symbol.asyncIterator](): AsyncIterator<[1 | 2, Buffer]>;
}

export class Client {
  constructor(options?: { path?: string; timeoutMs?: number });
  readonly path: string;
  call(method: string, path: string, body?: Json): Promise<any>;
  version(): Promise<Json>;
  sandboxes(): Promise<Sandbox[]>;
  create(spec: Json & { name: string }, options?: { start?: boolean }): Promise<Sandbox>;
  sandbox(ref: string, waitMs?: number): Promise<Sandbox>;
  update(ref: string, changes: Json): Promise<Sandbox>;
  remove(ref: string, options?: { force?: boolean }): Promise<void>;
  start(ref: string, waitMs?: number): Promise<Sandbox>;
  stop(ref: string, options?: { timeoutMs?: number; suspend?: boolean }): Promise<Sandbox>;
  stats(ref: string): Promise<Json>;
  ports(ref: string): Promise<Json[]>;
  /** Snapshots, `live`, then changes, without end: leave the loop to stop. */
  watch(): AsyncGenerator<Event, void, void>;
  exec(ref: string, argv: string[], options?: ExecOptions): Promise<Process>;
  run(ref: string, argv: string[],
      options?: Omit<ExecOptions, "stdin"> & { input?: Uint8Array | string }): Promise<Result>;
  readFile(ref: string, path: string, options?: { user?: string }): Promise<Buffer>;
  writeFile(ref: string, path: string, data: Uint8Array | string,
            options?: { user?: string }): Promise<void>;
  policy(): Promise<Json>;
  setPreset(preset: "allow-all" | "balanced" | "deny-all"): Promise<Json>;
  check(target: string, sandbox?: string): Promise<Json>;
  addRule(effect: "allow" | "deny" | "ask", resources: string | string[],
          fields?: Json): Promise<Json>;
  removeRule(id: string): Promise<Json>;
  holds(): Promise<Json[]>;
  answer(id: string, answer: "once" | "for" | "always" | "no" | "open", digest: string,
         fields?: Json): Promise<Json>;
  metrics(): Promise<string>;
}
