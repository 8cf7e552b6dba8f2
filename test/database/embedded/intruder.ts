// Another program of the database's system user: tries to log in and to read the password file.
import { readFileSync } from "node:fs";
import postgres from "postgres";

const [socketDir = "", passwordFile = ""] = process.argv.slice(2);

async function connectAs(username: string): Promise<string> {
  const sql = postgres({ host: socketDir, port: 5432, username, password: "guess", database: "postgres", max: 1 });
  try {
    await sql`SELECT 1`;
    return "connected";
  } catch (error) {
    return String((error as { code?: string }).code);
  } finally {
    await sql.end({ timeout: 1 });
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    return String((error as NodeJS.ErrnoException).code);
  }
}

console.log(JSON.stringify({ login: await connectAs("postgres"), file: read(passwordFile) }));
