// Restate, doing what Holdpoint is measured by: the service that its server calls.
//
// The handler is the least that parks: an awakeable, its id told to a person, and an effect. There is no model. Telling is
// a step that is recorded, as Restate's documentation has it, so that nobody is asked twice; with the word `unrecorded` it
// is not, which is less than is promised and costs less. Who is told is whoever started this, by a line on stdout.
//
// The first line says on which port it listens; when stdin ends, the last one says how often the effect happened.

import * as restate from "@restatedev/restate-sdk";

const isRecorded = process.argv[2] !== "unrecorded";
let effects = 0;

async function transfer(ctx, run) {
  const { id, promise } = ctx.awakeable();
  const ask = () => tell([run, id]);
  await (isRecorded ? ctx.run("ask", ask) : ask());
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
