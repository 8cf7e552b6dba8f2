import { DomainError } from "../domain/errors.ts";
import type { Catalog } from "../models/catalog.ts";
import { ModelsError } from "../models/models-error.ts";
import { readModels } from "../models/read-models.ts";
import type { Cells } from "../store/driver/cells.ts";
import { registerPrices } from "../store/prices.ts";
import type { Log } from "../telemetry/log.ts";
import type { Runner } from "../upstreams/runner/runner.ts";
import { warnOfExposedKeys } from "./exposed-file.ts";

type ReloadOptions = {
  readonly path: string | undefined;
  readonly catalog: Catalog;
  readonly upstreams: Runner;
  readonly database: Cells;
  readonly log: Log;
};

/** Reloads the models file. An invalid file, or a failing database, changes nothing. Running calls keep their model. */
export async function reloadModels({
  path,
  catalog,
  upstreams,
  database,
  log,
}: ReloadOptions): Promise<void> {
  if (path === undefined) return;
  try {
    const models = await registerPrices(database, await readModels(path, process.env));
    await upstreams.use(models);
    catalog.replace(models);
    warnOfExposedKeys(models, log);
    log.info({ models: models.length }, "reloaded models");
  } catch (error) {
    const message = "reloading models failed, the previous models stay in use";
    if (error instanceof ModelsError) log.error({ mistakes: error.message }, message);
    else if (error instanceof DomainError) log.error({ err: error }, message);
    else throw error;
  }
}
