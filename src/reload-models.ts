import type { Log } from "./log.ts";
import type { Catalog } from "./models/catalog.ts";
import { ModelsError } from "./models/models-error.ts";
import { readModels } from "./models/read-models.ts";

/** Takes the models as the file has them now; a wrong file changes nothing. Calls that run keep their model. */
export async function reloadModels(catalog: Catalog, path: string | undefined, log: Log): Promise<void> {
  try {
    catalog.replace(await readModels(path, process.env));
    log.info({ models: catalog.list().length }, "models were read again");
  } catch (error) {
    if (!(error instanceof ModelsError)) throw error;
    log.error({ mistakes: error.message }, "models could not be read again, the former ones stay");
  }
}
