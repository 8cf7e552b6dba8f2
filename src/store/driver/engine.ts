/** What stores a cell: one PostgreSQL server, or a Citus cluster that has the schema of the cell on one of its workers. */
export const ENGINES = ["postgresql", "citus"] as const;
export type Engine = (typeof ENGINES)[number];
