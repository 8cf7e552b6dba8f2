// A separate process that starts the database of a data folder, prints the result as JSON and keeps running.
import { startEmbeddedPostgres } from "../../../src/database/embedded/embedded-postgres.ts";

const said: string[] = [];
try {
  const dataDir = process.argv[2] ?? "";
  const { clusterDir, socketDir, adopted, passwordOf } = await startEmbeddedPostgres({
    dataDir,
    print: (line) => said.push(line),
  });
  console.log(JSON.stringify({ clusterDir, socketDir, adopted, said, password: passwordOf("postgres") }));
  setInterval(() => undefined, 60_000);
} catch (error) {
  console.log(JSON.stringify({ said, error: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }));
}
