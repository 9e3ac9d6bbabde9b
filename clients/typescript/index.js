// SPDX-License-Identifier: Apache-2.0
// A client of the API of sbxd (proto/PROTOCOL.api) without dependencies. index.d.ts has the types.
import { request } from "node:http";
import { homedir } from "node:os";

const MAX_FRAME = 65536;
const SPEC = 1, STDIN = 2, STDIN_EOF = 3, RESIZE = 4, SIGNAL = 5;
const STARTED = 16, STDOUT = 17, STDERR = 18, EXIT = 19, ERROR = 20, TAKEN = 22,
      DETACHED = 23;

export class SbxError extends Error {
  constructor(status, code, message, hint = "") {
    super(message);
    this.name = "SbxError";
    Object.assign(this, { status, code, hint });
  }
}

export class StreamError extends Error {
  constructor(message, status = undefined) {
    super(message);
    this.name = "StreamError";
    this.status = status;
  }
}

function defaultSocket() {
  const { XDG_RUNTIME_DIR: run = "", XDG_STATE_HOME: state = "" } = process.env;
  if (run.startsWith("/")) return `${run}/sbx/sbxd.sock`;
  return `${state.startsWith("/") ? state : `${homedir()}/.local/state`}/sbx/run/sbxd.sock`;
}

function toError(status, data) {
  try {
    const { code, message, hint } = JSON.parse(data.toString()).error;
    return new SbxError(status, code, message, hint ?? "");
  } catch {
    return new SbxError(status, "", data.toString());
  }
}

async function collect(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

function pathOf(ref, rest = "", query = {}) {
  const given = Object.entries(query).filter(([, v]) => v !== undefined && v !== 0);
  const text = new URLSearchParams(given.map(([k, v]) => [k, String(v)])).toString();
  return `/v1/sandboxes/${encodeURIComponent(ref)}${rest}${text ? `?${text}` : ""}`;
}

function putString(text) {
  const data = Buffer.from(text);
  if (data.length > 65535) throw new RangeError("a string of an exec has at most 65535 bytes");
  const head = Buffer.alloc(2);
  head.writeUInt16LE(data.length);
  return Buffer.concat([head, data]);
}

function u16(...values) {
  const data = Buffer.alloc(2 * values.length);
  values.forEach((v, i) => data.writeUInt16LE(v, 2 * i));
  return data;
}

/** A program in a sandbox: an async iterable of [1 | 2, Buffer] for stdout and stderr. */
export class Process {
  #socket;
  #rest;

  constructor(socket, head) {
    this.#socket = socket;
    this.#rest = head;
    this.pid = undefined;
    this.status = undefined;
    socket.on("error", () => {}); // the iteration reports it
  }

  send(kind, payload = Buffer.alloc(0)) {
    const head = Buffer.alloc(4);
    head.writeUInt32LE(kind + payload.length * 256);
    return new Promise((done, fail) => {
      this.#socket.write(Buffer.concat([head, payload]), (e) => (e ? fail(e) : done()));
    });
  }

  async write(data) {
    const bytes = Buffer.from(data);
    for (let at = 0; at < bytes.length; at += MAX_FRAME)
      await this.send(STDIN, bytes.subarray(at, at + MAX_FRAME));
  }

  closeStdin() {
    return this.send(STDIN_EOF);
  }

  signal(number) {
    return this.send(SIGNAL, Buffer.from([number]));
  }

  resize(rows, columns) {
    return this.send(RESIZE, u16(rows, columns));
  }

  /** One frame: output, or undefined. */
  #take(kind, payload) {
    if (kind === STARTED) this.pid = payload.readUInt32LE(0);
    else if (kind === STDOUT || kind === STDERR) return [kind - STDOUT + 1, payload];
    else if (kind === EXIT) this.status = payload[1] + (payload[0] ? 128 : 0);
    else if (kind === ERROR) throw new StreamError(payload.subarray(1).toString(), payload[0]);
    else if (kind === DETACHED)
      throw new StreamError("the sandbox is being suspended: the program continues in it");
    else if (kind !== TAKEN) throw new StreamError(`unexpected frame ${kind}`);
    return undefined;
  }

  async *#frames() {
    for await (const part of this.#parts()) {
      this.#rest = Buffer.concat([this.#rest, part]);
      while (this.#rest.length >= 4) {
        const length = this.#rest.readUInt32LE(0) >>> 8;
        if (length > MAX_FRAME) throw new StreamError("a frame is too long");
        if (this.#rest.length < 4 + length) break;
        const kind = this.#rest[0], payload = this.#rest.subarray(4, 4 + length);
        this.#rest = this.#rest.subarray(4 + length);
        yield [kind, payload];
      }
    }
  }

  async *#parts() {
    yield Buffer.alloc(0);
    try {
      yield* this.#socket;
    } catch {
      // as an end without EXIT
    }
  }

  async *[Symbol.asyncIterator]() {
    if (this.status !== undefined) return;
    for await (const [kind, payload] of this.#frames()) {
      const output = this.#take(kind, payload);
      if (output) yield output;
      if (this.status !== undefined) return;
    }
    throw new StreamError("the connection or the sandbox was lost");
  }

  async wait() {
    const out = [[], [], []];
    for await (const [stream, data] of this) out[stream].push(data);
    return { status: this.status, stdout: Buffer.concat(out[1]), stderr: Buffer.concat(out[2]) };
  }

  close() {
    this.#socket.destroy();
  }
}

export class Client {
  constructor({ path = defaultSocket(), timeoutMs = 330000 } = {}) {
    this.path = path;
    this.timeoutMs = timeoutMs;
  }

  #request(method, path, headers, { body, timeoutMs = 0 } = {}) {
    const options = { socketPath: this.path, method, path, headers, agent: false };
    return new Promise((done, fail) => {
      const req = request(options);
      req.setTimeout(timeoutMs, () => req.destroy(new Error("sbxd did not respond in time")));
      req.on("response", (response) => done({ response }));
      req.on("upgrade", (response, socket, head) => done({ response, socket, head }));
      req.on("error", fail);
      req.end(body);
    });
  }

  /** Any call of PROTOCOL.api; null for a response without a body. */
  async call(method, path, body = undefined) {
    const data = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
    const headers = { Host: "sbxd", Connection: "close" };
    if (data) Object.assign(headers, { "Content-Type": "application/json",
                                       "Content-Length": data.length });
    const { response } = await this.#request(method, path, headers,
                                             { body: data, timeoutMs: this.timeoutMs });
    const text = await collect(response);
    if (response.statusCode >= 400) throw toError(response.statusCode, text);
    if (!text.length) return null;
    const isJson = (response.headers["content-type"] ?? "").includes("json");
    return isJson ? JSON.parse(text.toString()) : text.toString();
  }

  version() { return this.call("GET", "/v1/version"); }

  async sandboxes() { return (await this.call("GET", "/v1/sandboxes")).sandboxes; }

  create(spec, { start = false } = {}) {
    return this.call("POST", "/v1/sandboxes", start ? { ...spec, start: true } : spec);
  }

  sandbox(ref, waitMs = 0) { return this.call("GET", pathOf(ref, "", { wait: waitMs })); }

  update(ref, changes) { return this.call("PATCH", pathOf(ref), changes); }

  async remove(ref, { force = false } = {}) {
    await this.call("DELETE", pathOf(ref, "", { force: force ? 1 : undefined }));
  }

  async start(ref, waitMs = 300000) {
    const started = await this.call("POST", pathOf(ref, "/start"));
    return waitMs ? this.sandbox(ref, waitMs) : started;
  }

  stop(ref, { timeoutMs, suspend = false } = {}) {
    const body = suspend ? { suspend: true }
                         : timeoutMs === undefined ? {} : { timeout_ms: timeoutMs };
    return this.call("POST", pathOf(ref, "/stop"), body);
  }

  stats(ref) { return this.call("GET", pathOf(ref, "/stats")); }

  async ports(ref) { return (await this.call("GET", pathOf(ref, "/ports"))).ports; }

  async *watch() {
    const { response } = await this.#request("GET", "/v1/watch", { Host: "sbxd" });
    if (response.statusCode >= 400) throw toError(response.statusCode, await collect(response));
    let rest = "";
    try {
      response.setEncoding("utf8");
      for await (const part of response) {
        const lines = (rest + part).split("\n");
        rest = lines.pop();
        for (const line of lines) if (line) yield JSON.parse(line);
      }
    } finally {
      response.destroy();
    }
  }

  async exec(ref, argv, { stdin = false, tty = false, user = "", cwd = "", env = {}, rows = 24,
                          columns = 80 } = {}) {
    const variables = Object.entries(env).map(([k, v]) => `${k}=${v}`);
    const texts = [argv, variables].flatMap((list) => [u16(list.length), ...list.map(putString)]);
    const spec = Buffer.concat([Buffer.from([(tty ? 1 : 0) | (stdin ? 4 : 0)]),
                                u16(rows, columns), putString(user), putString(cwd), ...texts]);
    if (spec.length > MAX_FRAME)
      throw new RangeError("arguments and variables have more than 65536 bytes");
    const { response, socket, head } = await this.#request("POST", pathOf(ref, "/exec"), {
      Host: "sbxd", Connection: "Upgrade", Upgrade: "sbx-stream" });
    if (!socket) throw toError(response.statusCode, await collect(response));
    const started = new Process(socket, head);
    await started.send(SPEC, spec);
    return started;
  }

  async run(ref, argv, { input, ...options } = {}) {
    const started = await this.exec(ref, argv, { ...options, stdin: input !== undefined });
    try {
      const end = started.wait();
      end.catch(() => {}); // it is awaited below, after the input
      if (input !== undefined) {
        await started.write(input);
        await started.closeStdin();
      }
      return await end;
    } finally {
      started.close();
    }
  }

  async readFile(ref, path, { user = "" } = {}) {
    const { status, stdout, stderr } = await this.run(ref, ["cat", "--", path], { user });
    if (status) throw new Error(stderr.toString().trim());
    return stdout;
  }

  async writeFile(ref, path, data, { user = "" } = {}) {
    const argv = ["sh", "-c", 'cat >"$1"', "sh", path];
    const { status, stderr } = await this.run(ref, argv, { user, input: data });
    if (status) throw new Error(stderr.toString().trim());
  }

  policy() { return this.call("GET", "/v1/policy"); }

  setPreset(preset) { return this.call("PUT", "/v1/policy", { preset }); }

  check(target, sandbox = undefined) {
    const query = new URLSearchParams(sandbox ? { target, sandbox } : { target });
    return this.call("GET", `/v1/policy/check?${query}`);
  }

  addRule(effect, resources, fields = {}) {
    return this.call("POST", "/v1/policy/rules", { effect, resources, ...fields });
  }

  removeRule(id) { return this.call("DELETE", `/v1/policy/rules/${encodeURIComponent(id)}`); }

  async holds() { return (await this.call("GET", "/v1/holds")).holds; }

  answer(id, answer, digest, fields = {}) {
    return this.call("POST", `/v1/holds/${encodeURIComponent(id)}`, { answer, digest, ...fields });
  }

  metrics() { return this.call("GET", "/v1/metrics"); }
}
