import { X509Certificate } from "node:crypto";
import { statfs } from "node:fs/promises";
import type { Model } from "../domain/model.ts";
import { ModelsError } from "../models/models-error.ts";
import { readModels } from "../models/read-models.ts";
import type { DatabaseAddress } from "../store/driver/connect.ts";
import { readCells } from "./cells-file.ts";
import type { Config } from "./config.ts";
import { checkDatabase, type DatabaseToCheck, type Finding } from "./doctor-database.ts";
import type { TlsFiles } from "./tls-files.ts";

const GIB = 1_073_741_824;
const MIN_FREE_BYTES = GIB;
const FEW_FREE_BYTES = 5 * GIB;
const DAY_MS = 86_400_000;
const FEW_DAYS = 14;
const UPSTREAM_TIMEOUT_MS = 5_000;

type DoctorOptions = {
  readonly config: Config;
  readonly env: NodeJS.ProcessEnv;
  /** The login to the embedded database; undefined for other databases. */
  readonly embedded: DatabaseAddress | undefined;
};

/** Checks everything that the server needs. Changes nothing and calls no model. */
export async function examine({ config, env, embedded }: DoctorOptions): Promise<Finding[]> {
  const models = await checkModels(config.modelsFile, env);
  const groups = await Promise.all([
    ...(await databasesOf(config, embedded)).map(async (database) => await checkDatabase(database, config)),
    embedded ? checkDisk(config.dataDir) : [],
    checkUpstreams(models.models),
    checkCertificates(config),
  ]);
  return [...groups.flat(), ...models.findings];
}

/** What a start can check without delay: the clock, connections and partitions of the database, and certificates. */
export async function examineAtStart({ config, embedded }: Omit<DoctorOptions, "env">): Promise<Finding[]> {
  const databases = await databasesOf(config, embedded);
  const groups = databases.map((database) => checkDatabase(database, config, { isStart: true }));
  return [...(await Promise.all(groups)).flat(), ...checkCertificates(config)];
}

async function databasesOf(
  config: Config,
  embedded: DatabaseAddress | undefined,
): Promise<readonly DatabaseToCheck[]> {
  const cells = await readCells(config.cellsFile);
  if (cells) return cells.map((cell) => ({ ...cell, isEmbedded: false }));
  const only = { schema: "vx", engine: "postgresql" } as const;
  if (embedded) return [{ ...only, address: embedded, isEmbedded: true }];
  const url = config.databaseUrl;
  return url === undefined ? [] : [{ ...only, address: { kind: "url", url }, isEmbedded: false }];
}

async function checkDisk(dataDir: string): Promise<Finding[]> {
  const check = "disk";
  const { bavail, bsize } = await statfs(dataDir);
  const free = bavail * bsize;
  const message = `${(free / GIB).toFixed(1)} GiB free for ${dataDir}`;
  if (free >= FEW_FREE_BYTES) return [{ check, status: "ok", message }];
  const advice =
    "free space on this file system, or move old months away with 'vx archive'; calls fail when it is full";
  return [{ check, status: free < MIN_FREE_BYTES ? "problem" : "warning", message, advice }];
}

async function checkModels(path: string | undefined, env: NodeJS.ProcessEnv) {
  const check = "models file";
  try {
    const models = await readModels(path, env);
    const message =
      path === undefined ? "VX_MODELS is not set: the sandbox models" : `${models.length} models`;
    return { models, findings: [{ check, status: "ok", message } satisfies Finding] };
  } catch (error) {
    if (!(error instanceof ModelsError)) throw error;
    const advice = `correct ${path}; docs/models.md describes it`;
    const finding: Finding = {
      check,
      status: "problem",
      message: error.message.replaceAll("\n", "; "),
      advice,
    };
    return { models: [], findings: [finding] };
  }
}

/** Connects to each upstream without its key: any response shows that it can be reached. */
async function checkUpstreams(models: readonly Model[]): Promise<Finding[]> {
  const urls = models.flatMap(({ upstreams }) =>
    upstreams.flatMap((upstream) => (upstream.kind === "sandbox" ? [] : [upstream.baseUrl])),
  );
  return await Promise.all([...new Set(urls)].map(checkUpstream));
}

async function checkUpstream(url: string): Promise<Finding> {
  const check = "upstream";
  const { origin, host } = new URL(url);
  try {
    const signal = AbortSignal.timeout(UPSTREAM_TIMEOUT_MS);
    const { status, body } = await fetch(origin, { method: "HEAD", redirect: "manual", signal });
    await body?.cancel();
    const message = `${host} answers (HTTP ${status})`;
    if (status < 500) return { check, status: "ok", message };
    return { check, status: "warning", message, advice: "look at the log of the upstream" };
  } catch (error) {
    const { cause, message } = error as Error;
    const reason = cause instanceof Error ? cause.message || (cause as { code?: string }).code : message;
    const advice = "check base_url in the models file, DNS, the firewall and the certificate of the upstream";
    return { check, status: "problem", message: `${host} cannot be reached: ${reason}`, advice };
  }
}

function checkCertificates({ tls, adminTls }: Config): Finding[] {
  return [
    ...(tls ? [checkCertificate("certificate", "VX_TLS_CERT", tls)] : []),
    ...(adminTls ? [checkCertificate("operator certificate", "VX_ADMIN_TLS_CERT", adminTls)] : []),
  ];
}

function checkCertificate(check: string, setting: string, files: TlsFiles): Finding {
  const { validFromDate, validToDate } = new X509Certificate(files.read().cert);
  const days = (validToDate.getTime() - Date.now()) / DAY_MS;
  const until = validToDate.toISOString().slice(0, 10);
  const advice = `replace the files of ${setting} and send SIGHUP to the server`;
  if (validFromDate.getTime() > Date.now()) {
    const from = validFromDate.toISOString();
    return { check, status: "problem", message: `is not valid before ${from}`, advice };
  }
  if (days < 0) return { check, status: "problem", message: `expired on ${until}`, advice };
  const message = `expires on ${until}, in ${Math.floor(days)} days`;
  return days < FEW_DAYS ? { check, status: "warning", message, advice } : { check, status: "ok", message };
}
