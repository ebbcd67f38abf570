// Restate, doing what Holdpoint is measured by: the service that its server calls.
//
// The handler is the least that parks: an awakeable, and after it an effect that is recorded. There is no model. The
// awakeable's id goes to whoever started this, as a line on stdout: nothing could cost less, and nothing of it is recorded.
//
// The first line says on which port it listens; when stdin ends, the last one says how often the effect happened.

import * as restate from "@restatedev/restate-sdk";

let effects = 0;

async function transfer(ctx, run) {
  const { id, promise } = ctx.awakeable();
  tell([run, id]);
  const decision = await promise;
  if (decision !== "approve") {
    throw new restate.TerminalError("it was not approved");
  }
  await ctx.run("transfer", () => {
    effects += 1;
  });
  return "transferred";
}

function tell(value) {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

const transfers = restate.service({ name: "transfers", handlers: { transfer } });

// Its log would stand between the lines, and cost something.
const endpoint = restate.endpoint().setLogger(() => {}).bind(transfers);
tell(await endpoint.listen(0));

process.stdin.on("end", () => {
  tell(effects);
  process.exit(0);
});
process.stdin.resume();
