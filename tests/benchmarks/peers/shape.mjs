// What every Node.js peer's script has in common; the commands and files are those of shape.py.
import fs from "node:fs";
import process from "node:process";

export const URL_ = process.env.BENCH_URL.replace("@/", "@localhost/");
const CHUNK = 1000;
const clock = () => (performance.timeOrigin + performance.now()) / 1000;
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

const number = Buffer.alloc(8);
let count = 0;
let countFile = null;
let timesFile = null;
let writing = false;

// To be called first by the handler. The count reaches its file at most every 2 ms: a write per job would cost the peer.
export function seen(i) {
  const now = clock();
  if (countFile === null) {
    const base = `${process.env.BENCH_COUNTS}.${process.pid}`;
    countFile = fs.openSync(`${base}.count`, "w+");
    if (process.env.BENCH_TIMES) timesFile = fs.openSync(`${base}.times`, "w");
  }
  count += 1;
  if (!writing) {
    writing = true;
    setTimeout(() => {
      writing = false;
      number.writeBigInt64LE(BigInt(count));
      fs.writeSync(countFile, number, 0, 8, 0);
    }, 2);
  }
  if (timesFile !== null) fs.writeSync(timesFile, `${i} ${now.toFixed(7)}\n`);
}

async function pace(add, total, rate) {
  const committed = [];
  let due = clock();
  for (let i = 0; i < total; i++) {
    due += 1 / rate;
    const wait = due - clock();
    if (wait > 0) await sleep(wait);
    await add(i);
    committed.push([i, clock()]);
  }
  return { committed };
}

async function timed(action) {
  const began = clock();
  await action();
  return { seconds: clock() - began };
}

export async function main({ setup, connect, addMany, add, work }) {
  const [command, total, rate] = process.argv.slice(2);
  if (command === "work") {
    process.on("SIGTERM", () => process.exit(0));
    await work();
    setInterval(() => {}, 1e6);
    return;
  }
  let result = {};
  if (command === "setup") {
    await setup();
  } else {
    await connect();
    if (command === "fill") {
      result = await timed(async () => {
        for (let first = 0; first < total; first += CHUNK) {
          const length = Math.min(CHUNK, total - first);
          await addMany(Array.from({ length }, (_, offset) => first + offset));
        }
      });
    } else if (command === "add") {
      result = await timed(async () => {
        for (let i = 0; i < total; i++) await add(i);
      });
    } else {
      result = await pace(add, +total, +rate);
    }
  }
  console.log(JSON.stringify(result));
  process.exit(0);
}
