// The way in which the described JavaScript client reads: frames between blank lines, of each one `event:` and one `data:`
// line; and its bare counterpart.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { post, serve } from "./server.mjs";

let server;
before(async () => {
  server = await serve();
});
after(() => server.stop());

/** Hands every whole frame of a response to `each`, as its bytes arrive. */
async function frames(response, each) {
  assert.equal(response.status, 200);
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of response.body) {
    rest += decoder.decode(bytes, { stream: true });
    const whole = rest.split("\n\n");
    rest = whole.pop();
    for (const frame of whole) each(frame);
  }
  assert.equal(rest, "");
}

/** A conversation by name: what is shown, and what is asked. */
async function byName(path, body) {
  const seen = { text: "", asked: null, types: [] };
  await frames(await post(server.url, path, body, { "X-A2UI": "true" }), (frame) => {
    const name = frame.match(/^event: (.+)/m);
    const data = frame.match(/^data: (.+)/m);
    if (!name || !data) return;
    const event = JSON.parse(data[1]);
    assert.equal(event.type, name[1]);
    assert.equal(typeof event.timestamp, "number");
    seen.types.push(event.type);
    if (event.type === "text") seen.text += event.data.delta;
    if (event.type === "interrupt") seen.asked = event.data;
  });
  assert.equal(seen.types.at(-1), "done");
  return seen;
}

/** The same from bare lines. */
async function bare(path, body) {
  const seen = { text: "", asked: null, done: false };
  await frames(await post(server.url, path, body), (frame) => {
    const lines = frame.split("\n").filter((line) => line.startsWith("data: "));
    if (lines.length === 0) return;
    const data = lines.map((line) => line.slice(6)).join("\n");
    assert.ok(!seen.done, "nothing follows [DONE]");
    if (data === "[DONE]") seen.done = true;
    else if (data.startsWith("\0INTERRUPT:")) seen.asked = JSON.parse(data.slice(11));
    else seen.text += data;
  });
  assert.ok(seen.done);
  return seen;
}

for (const [format, talk] of [["by name", byName], ["bare", bare]]) {
  for (const confirm of [true, false]) {
    test(`a deployment is ${confirm ? "confirmed" : "refused"}, ${format}`, async () => {
      const who = { agent_id: "approval-agent", session_id: `deploy-${format}-${confirm}` };
      const asked = await talk("stream", { ...who, message: "部署 v2.0 到生产环境" });
      assert.match(asked.text, /^我将要部署v2\.0/);
      assert.equal(asked.asked.reason, "Please confirm: 即将部署 v2.0 到生产环境,此操作不可逆。");
      assert.deepEqual(asked.asked.fields, [
        { name: "confirm", type: "confirm", label: "Confirm action", required: true },
      ]);
      const query = new URLSearchParams(who);
      const state = await (await fetch(`${server.url}/api/v1/chat/interrupt_state?${query}`)).json();
      assert.equal(state.interrupted, true);
      assert.match(state.state.checkpoint_id, new RegExp(`^approval-agent_${who.session_id}_\\d{19}$`));
      const answered = await talk("resume", { ...who, input: { confirm } });
      assert.match(answered.text, confirm ? /部署完成/ : /已取消/);
      assert.equal(answered.asked, null);
      const again = await post(server.url, "resume", { ...who, input: { confirm } });
      assert.equal(again.status, 409);
      assert.equal((await again.json()).error, `no pending interrupt for session: ${who.session_id}`);
    });
  }
}
