import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Arena } from "../arena.ts";
import type { Entry } from "../history.ts";
import { OPERATOR_TOKEN } from "../settings.ts";
import type { Tenants } from "../tenants.ts";
import type { Violation } from "./facts.ts";

const RULE = "8 no key is written anywhere";

/**
 * Invariant 8: searches for every key that was used in everything that was written, including the database's
 * files.
 */
export async function checkSecrets(
  arena: Arena,
  tenants: readonly Tenants[],
  entries: readonly Entry[],
): Promise<{ violations: Violation[]; keys: number; places: number }> {
  const secrets = tenants.flatMap(({ keys }) => [...keys.values()].map(({ secret }) => secret));
  const places = new Map<string, string>([
    ...arena.servers.map((server, i) => [`the log of server ${i}`, server.logText()] as const),
    ["the log of PostgreSQL", arena.store.logText()],
    ["the requests to the upstream", arena.upstream.heardText],
    ["errors", entries.map(({ errorText }) => errorText).join("\n")],
  ]);
  for (const [i, server] of arena.servers.entries()) places.set(`the metrics of server ${i}`, await metricsOf(server.adminPort));
  const violations: Violation[] = [];
  for (const [place, text] of places) {
    // Twelve characters of the random part identify a key, even if it was truncated.
    const found = secrets.filter((secret) => text.includes(secret.slice(8, 20)));
    if (found.length > 0) violations.push({ rule: RULE, text: `${found.length} keys found in ${place}` });
  }
  // Tables, indexes and the write-ahead log, as stored on disk.
  await arena.store.checkpoint();
  if (
    await areInFolder(
      arena.store.folder,
      secrets.map((secret) => secret.slice(8, 20)),
    )
  ) {
    violations.push({ rule: RULE, text: "a key found in the files of the database" });
  }
  return { violations, keys: secrets.length, places: places.size + 1 };
}

async function metricsOf(port: number): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${port}/metrics`, {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
  });
  if (answer.status !== 200) throw new Error(`/metrics: ${answer.status}`);
  return await answer.text();
}

/** grep exits with 1 if nothing matches. */
async function areInFolder(folder: string, texts: readonly string[]): Promise<boolean> {
  try {
    await promisify(execFile)("grep", ["-rqF", ...texts.flatMap((text) => ["-e", text]), folder]);
    return true;
  } catch (error) {
    if ((error as { code?: number }).code === 1) return false;
    throw error;
  }
}
