// graphile-worker with the settings of its own performance test: 24 jobs at once, a local queue of 500 refilled after
// 10 ms, completions written in batches without a delay. Without the local queue and the batches it is ten times slower.
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import { URL_, main, seen } from "./shape.mjs";

const logger = new Logger(() => () => {});
const JOBS = 24;
const worker = {
  connectionString: URL_,
  concurrentJobs: JOBS,
  maxPoolSize: JOBS + 1,
  localQueue: { size: 500, refetchDelay: { durationMs: 10 } },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  logger,
};
let utils;
const connect = async () => {
  utils = await makeWorkerUtils({ connectionString: URL_, logger });
};

await main({
  setup: async () => {
    await connect();
    await utils.migrate();
  },
  connect: async () => {
    await connect();
    await utils.withPgClient((client) => client.query("select 1"));
  },
  addMany: (numbers) => utils.addJobs(numbers.map((i) => ({ identifier: "noop", payload: { i } }))),
  add: (i) => utils.addJob("noop", { i }),
  work: () => run({ preset: { worker }, taskList: { noop: (payload) => seen(payload.i) } }),
});
