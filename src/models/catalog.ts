import type { Model } from "../domain/model.ts";

/** The models that can be asked now. A call keeps the model that it began with. */
export class Catalog {
  #sorted: readonly Model[] = [];
  #byId: ReadonlyMap<string, Model> = new Map();

  constructor(models: readonly Model[]) {
    this.replace(models);
  }

  /** By id. */
  list(): readonly Model[] {
    return this.#sorted;
  }

  get(id: string): Model | undefined {
    return this.#byId.get(id);
  }

  /** All at once: nobody sees one half of the old and one half of the new. */
  replace(models: readonly Model[]): void {
    // By code units, as page tokens are compared.
    this.#sorted = models.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    this.#byId = new Map(models.map((model) => [model.id, model]));
  }
}
