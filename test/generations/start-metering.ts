import { createMetering, type Metering } from "../../src/app/create-metering.ts";
import type { Model } from "../../src/domain/model.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { TokenCounter } from "../../src/tokens/token-counter.ts";
import { clock, type TestStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

type Options = Pick<Parameters<typeof createMetering>[0], "streamEvents"> & { readonly tokens: TokenCounter };

/** The metering of a server with one model. */
export async function startMetering({ database }: TestStore, model: () => Model, options: Options): Promise<Metering> {
  const metering = createMetering({
    databases: { single: database, billing: database, monitor: database, clocks: [clock] } as never,
    topUpUrl: undefined,
    pipelines: 1,
    models: { get: model, list: () => [model()] },
    ids: typeIds,
    log: createLog("silent"),
    metrics: createMetrics("test"),
    ...options,
  });
  await metering.start();
  return metering;
}
