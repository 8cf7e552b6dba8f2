import type { Database } from "./driver/database.ts";

/** Figures of all servers that use the database. */
export type ServiceFigures = {
  readonly servers: bigint;
  readonly generations: bigint;
  readonly held_micros: bigint;
};

export async function readServiceFigures(database: Database): Promise<ServiceFigures> {
  const [row] = await database.call<ServiceFigures>("service_figures");
  return row as ServiceFigures;
}
