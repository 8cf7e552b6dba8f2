/** What decides how many connections to PostgreSQL the server opens. */
type ConnectionSettings = {
  readonly workers: number;
  readonly databaseConnections: number;
  readonly admissionPipelines: number;
};

/** Beside the two pools that are settings, each process has a monitor, and a small pool for money. */
const OTHERS_PER_PROCESS = 1 + 4;
/** The guard, migrations, a person with psql, those kept back for superusers, late ones that are being replaced. */
const RESERVE = 30;
/** Enough for a start with usual settings to be no special case. */
const LEAST = 100;
/** What an embedded PostgreSQL can be expected to serve. */
export const MOST_EMBEDDED_CONNECTIONS = 5_000;

/** The connections an embedded PostgreSQL must allow. */
export function embeddedConnections(settings: ConnectionSettings): number {
  const perProcess = settings.databaseConnections + settings.admissionPipelines + OTHERS_PER_PROCESS;
  // Beside several workers, the process that starts them serves the operator.
  const processes = settings.workers === 1 ? 1 : settings.workers + 1;
  return Math.max(LEAST, processes * perProcess + RESERVE);
}
