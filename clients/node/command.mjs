// Runs the real binary's commands, as a person or a program would.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";

/** Starts a command in a folder, with nothing else in its environment. */
export function start(folder, env, words, build = "HOLDPOINT_BIN") {
  const binary = process.env[build];
  assert.ok(binary, `${build} must name the binary; \`cargo xtask test\` sets it`);
  const running = spawn(binary, words, {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: folder, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said = { out: "", errors: "" };
  running.stdout.on("data", (text) => (said.out += text));
  running.stderr.on("data", (text) => (said.errors += text));
  const late = setTimeout(() => running.kill("SIGKILL"), 60_000);
  const ended = new Promise((resolve) => running.once("close", resolve)).then((code) => {
    clearTimeout(late);
    return { code, ...said };
  });
  return { running, ended };
}

/** Runs a command to its end. What it printed is read as JSON. */
export async function hold(folder, env, ...words) {
  const { code, out, errors } = await start(folder, env, [...words, "--json"]).ended;
  assert.notEqual(out, "", errors);
  return { code, errors, ...JSON.parse(out) };
}

/** What the tools of a run gave. */
export const contents = (view) => view.messages.filter((it) => it.type === "tool").map((it) => it.content);
