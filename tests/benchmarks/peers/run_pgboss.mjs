// pg-boss: batches of 500, full ones followed at once, woken by NOTIFY, half a second between looks when idle.
import { PgBoss } from "pg-boss";
import { URL_, main, seen } from "./shape.mjs";

let boss;
const connect = async (options) => {
  boss = new PgBoss({ connectionString: URL_, schedule: false, ...options });
  boss.on("error", (error) => console.error(error));
  await boss.start();
};

await main({
  setup: async () => {
    await connect({});
    await boss.createQueue("bench", { notify: true });
  },
  connect: () => connect({ supervise: false }),
  addMany: (numbers) => boss.insert("bench", numbers.map((i) => ({ data: { i } }))),
  add: (i) => boss.send("bench", { i }),
  work: async () => {
    await connect({ useListenNotify: true });
    const options = {
      batchSize: 500,
      burstWhenBatchFull: true,
      pollingIntervalSeconds: 0.5,
      notifyPollingIntervalSeconds: 0.5,
    };
    await boss.work("bench", options, async (jobs) => jobs.forEach((job) => seen(job.data.i)));
  },
});
