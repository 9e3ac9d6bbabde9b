// SPDX-License-Identifier: Apache-2.0
// node scenarios.js FILE SOCKET DIRECTORY - runs the scenarios of FILE (clients/README.md).
import { readFileSync } from "node:fs";
import { Client, SbxError, StreamError } from "./index.js";

const [file, path, directory] = process.argv.slice(2);
const client = new Client({ path });
let kept = "";

function value(v) {
  if (typeof v === "string") return v.replaceAll("$TMP", directory).replaceAll("$KEPT", kept);
  if (Array.isArray(v)) return v.map(value);
  if (v === null || typeof v !== "object") return v;
  if (v.repeat) return v.repeat[0].repeat(v.repeat[1]);
  return Object.fromEntries(Object.entries(v).map(([k, x]) => [k, value(x)]));
}

function isLike(got, want) {
  if (Array.isArray(want))
    return Array.isArray(got) && got.length === want.length &&
           want.every((x, i) => isLike(got[i], x));
  if (want !== null && typeof want === "object")
    return got !== null && typeof got === "object" &&
           Object.entries(want).every(([k, x]) => k in got && isLike(got[k], x));
  return got === want;
}

function expect(good, got) {
  if (!good) throw new Error(`got ${JSON.stringify(got)?.slice(0, 300)}`);
}

async function call(step) {
  const args = value(step.args), options = { ...step.options };
  switch (step.do) {
    case "create":
      return client.create(args[0], { start: step.start });
    case "remove":
      return client.remove(args[0], { force: step.force });
    case "stop":
      return client.stop(args[0], { timeoutMs: step.timeout, suspend: step.suspend });
    case "addRule":
      return client.addRule(...args, step.fields);
    case "run": {
      if (step.input !== undefined) options.input = value(step.input);
      const { status, stdout, stderr } = await client.run(args[0], args[1], options);
      return { status, stdout: stdout.toString(), stderr: stderr.toString() };
    }
    case "readFile":
      return (await client.readFile(...args)).toString();
    default:
      return client[step.do](...args);
  }
}

async function converse(step) {
  const started = await client.exec(...value(step.args), step.options);
  const output = started[Symbol.asyncIterator](), seen = ["", "", ""];
  for (const [what, ...args] of step.script) {
    if (what === "read") {
      while (seen[args[0]] !== args[1]) {
        const { value: part, done } = await output.next();
        expect(!done, seen);
        seen[part[0]] += part[1].toString();
      }
      seen[args[0]] = "";
    } else if (what === "end") {
      const { done } = await output.next();
      expect(done && started.status === args[0], started.status);
    } else {
      await started[what](...args);
    }
  }
  started.close();
}

async function watch(step) {
  const events = client.watch(), before = [];
  const next = async () => {
    const { value: event, done } = await events.next();
    expect(!done, "the end of the stream");
    return event;
  };
  for (let e = await next(); e.type !== "live"; e = await next()) before.push(e);
  for (const want of step.before ?? []) expect(before.some((e) => isLike(e, want)), before);
  for (const inner of step.then ?? []) await run(inner);
  for (const want of step.after ?? []) while (!isLike(await next(), want));
  await events.return();
}

function isExpected(step, error) {
  if (step.error)
    return error instanceof SbxError &&
           Object.entries(step.error).every(([k, x]) => error[k] === x);
  if (step.streamError)
    return error instanceof StreamError && (error.status ?? null) === step.streamError.status;
  return step.fails !== undefined && error.message.includes(step.fails);
}

async function run(step) {
  if (step.do === "exec") return converse(step);
  if (step.do === "watch") return watch(step);
  let got;
  try {
    got = await call(step);
  } catch (error) {
    if (!isExpected(step, error)) throw error;
    return undefined;
  }
  expect(!step.error && !step.streamError && step.fails === undefined, got);
  if ("is" in step) expect(isLike(got, value(step.is)), got);
  if ("has" in step) expect(got.some((x) => isLike(x, step.has)), got);
  if ("matches" in step) expect(new RegExp(step.matches).test(got), got);
  if ("keep" in step) kept = step.keep.split(".").reduce((o, k) => o[k], got);
  return undefined;
}

for (const scenario of JSON.parse(readFileSync(file, "utf8")).scenarios) {
  try {
    for (const step of scenario.steps) await run(step);
    console.log("ok", scenario.name);
  } catch (error) {
    process.exitCode = 1;
    console.log("FAILED", scenario.name, error.stack);
    for (const left of await client.sandboxes()) await client.remove(left.id, { force: true });
  }
}
