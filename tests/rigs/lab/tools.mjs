// SPDX-License-Identifier: Apache-2.0
// tools - the tool calls that provider.mjs sends to an agent before ANSWER: edit one file, then run
//         one command, or the given steps, with the tools of the agent.
//
// Each function takes the work ({file, old, new, command}, or {steps: [{file, old, new} or
// {command}, ...]}, or undefined) and the question, and returns the next call in the form of its
// API. The result is undefined if no step is left, or if the question offers no such tool (titles,
// summaries). The question contains the finished steps: each call has its number in its id, and
// results return the id. In a protocol without ids the results are counted.

const SHELL_MS = 30000; // for one read of the output of a codex command
const CODEX_MS = 600000; // for the program that reads

const steps = (work) => work.steps
  ?? [{ file: work.file, old: work.old, new: work.new }, { command: work.command }];

// The calls of Anthropic's agent, which edits only files that it has read.
const claude = (work) => steps(work).flatMap((step) => step.command
  ? [["Bash", { command: step.command, description: "commit and try it", timeout: 600000 }]]
  : [["Read", { file_path: step.file }],
    ["Edit", { file_path: step.file, old_string: step.old, new_string: step.new }]]);

const gemini = (work) => steps(work).flatMap((step) => step.command
  ? [["run_shell_command", { command: step.command, description: "commit and try it" }]]
  : [["read_file", { file_path: step.file }],
    ["replace", { file_path: step.file, old_string: step.old, new_string: step.new,
      instruction: "say it better" }]]);

const offered = (tools) => new Set(tools.map((tool) => tool.name));

export function anthropicCall(work, asked) {
  if (!work || !offered(asked.tools ?? []).has("Bash")) return undefined;
  const blocks = (asked.messages ?? []).flatMap((m) => (Array.isArray(m.content) ? m.content : []));
  const done = blocks.filter((b) => b.type === "tool_result").length;
  const next = claude(work)[done];
  return next && { type: "tool_use", id: `toolu_lab_${done}`, name: next[0], input: next[1] };
}

export function googleCall(work, asked) {
  const names = offered((asked.tools ?? []).flatMap((t) => t.functionDeclarations ?? []));
  if (!work || !names.has("run_shell_command")) return undefined;
  const done = (asked.contents ?? []).flatMap((c) => c.parts ?? [])
    .filter((p) => p.functionResponse).length;
  const next = gemini(work)[done];
  return next && { functionCall: { id: `call_lab_${done}`, name: next[0], args: next[1] } };
}

const patch = (step) => "*** Begin Patch\n"
  + `*** Update File: ${step.file}\n@@\n-${step.old}\n+${step.new}\n*** End Patch\n`;

// Codex has one tool for everything, `exec`: its argument is a program in JavaScript that calls the
// other tools.
const codex = (work) => steps(work).map((step) => step.command
  ? `let r = await tools.exec_command({
  cmd: ${JSON.stringify(step.command)}, yield_time_ms: ${SHELL_MS} });
text(r.output);
while (r.session_id !== undefined) {
  r = await tools.write_stdin({ session_id: r.session_id, yield_time_ms: ${SHELL_MS} });
  text(r.output);
}`
  : `text(await tools.apply_patch(${JSON.stringify(patch(step))}));`);

export function openaiCall(work, asked) {
  const added = (asked.input ?? []).filter((item) => item.type === "additional_tools")
    .flatMap((item) => item.tools);
  const names = offered([...(asked.tools ?? []), ...added].flatMap((tool) => tool.tools ?? [tool]));
  const last = (asked.input ?? []).filter((item) => item.type === "custom_tool_call_output").at(-1);
  if (!work || !(last || names.has("exec"))) return undefined;
  // A question over a WebSocket contains only new items; the id has the number of the step.
  const done = last ? Number(last.call_id.split("_")[2]) + 1 : 0;
  const next = codex(work)[done];
  return next && { type: "custom_tool_call", id: `item_lab_${done}`, call_id: `call_lab_${done}`,
    status: "completed", namespace: "functions", name: "exec",
    input: `// @exec: {"yield_time_ms": ${CODEX_MS}}\n${next}` };
}
