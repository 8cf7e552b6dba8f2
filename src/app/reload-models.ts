import type { Catalog } from "../models/catalog.ts";
import { ModelsError } from "../models/models-error.ts";
import { readModels } from "../models/read-models.ts";
import type { Log } from "../telemetry/log.ts";
import type { Runner } from "../upstreams/runner/runner.ts";

type ReloadOptions = {
  readonly path: string | undefined;
  readonly catalog: Catalog;
  readonly upstreams: Runner;
  readonly log: Log;
};

/** Reloads the models file. An invalid file changes nothing. Running calls keep their model. */
export async function reloadModels({ path, catalog, upstreams, log }: ReloadOptions): Promise<void> {
  if (path === undefined) return;
  try {
    const models = await readModels(path, process.env);
    await upstreams.use(models);
    catalog.replace(models);
    log.info({ models: models.length }, "reloaded models");
  } catch (error) {
    if (!(error instanceof ModelsError)) throw error;
    log.error({ mistakes: error.message }, "reloading models failed, the previous models stay in use");
  }
}
