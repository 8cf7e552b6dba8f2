/** The settings that decide how many connections to PostgreSQL a server opens. */
export type ConnectionSettings = {
  readonly workers: number;
  readonly databaseConnections: number;
  readonly admissionPipelines: number;
  readonly billingPipelines: number;
};

/** The pools of one process and their sizes. */
export function poolSizes(settings: Omit<ConnectionSettings, "workers">) {
  return {
    single: settings.databaseConnections,
    admission: settings.admissionPipelines,
    billing: settings.billingPipelines,
    // One each for the monitor, the heartbeats and the revocation watch.
    monitor: 3,
  };
}

/**
 * Reserved for the lock of the data folder, migrations, psql, the three connections that PostgreSQL keeps
 * for superusers, and abandoned connections whose backend still runs while they are replaced.
 */
const RESERVED_CONNECTIONS = 30;
/** Covers the usual settings, so that a small change of one needs no restart of the database. */
const MIN_EMBEDDED_CONNECTIONS = 100;
/** Each connection is a PostgreSQL process. */
export const MAX_EMBEDDED_CONNECTIONS = 5_000;

/** The connections that an embedded PostgreSQL must allow. */
export function embeddedConnections(settings: ConnectionSettings): number {
  return Math.max(MIN_EMBEDDED_CONNECTIONS, serverConnections(settings) + RESERVED_CONNECTIONS);
}

/** The connections that a server opens to a database. */
export function serverConnections(settings: ConnectionSettings): number {
  const perProcess = Object.values(poolSizes(settings)).reduce((sum, size) => sum + size, 0);
  // With several workers, the process that starts them serves the operator API with pools of the same size.
  const processes = settings.workers === 1 ? 1 : settings.workers + 1;
  return processes * perProcess;
}
