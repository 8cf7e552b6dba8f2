import type { Model } from "../domain/model.ts";

/** The current models. A call keeps the model that it started with. */
export class Catalog {
  #sorted: readonly Model[] = [];
  #byName: ReadonlyMap<string, Model> = new Map();

  constructor(models: readonly Model[]) {
    this.replace(models);
  }

  list(): readonly Model[] {
    return this.#sorted;
  }

  get(name: string): Model | undefined {
    return this.#byName.get(name);
  }

  /** Replaces all models at once, so readers never see a mix of old and new ones. */
  replace(models: readonly Model[]): void {
    // Sorted by code units, the order that page tokens use.
    this.#sorted = models.toSorted((one, other) => (one.id < other.id ? -1 : 1));
    this.#byName = new Map(models.flatMap((model) => [model.id, ...model.aliases].map((name) => [name, model] as const)));
  }
}
