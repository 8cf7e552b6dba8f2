import type { Sql } from "../../driver/connect.ts";
import type { Engine } from "../../driver/endpoints.ts";
import type { Distribution } from "../../schema/migrate.ts";
import { MigrationError } from "../../schema/release.ts";
import { readFunctionsIn, type SqlFile, sqlFile } from "../../schema/sql-files.ts";

/** Functions that only Citus needs, and its versions of functions of plain PostgreSQL. */
const OWN = new URL("./", import.meta.url);
/** The oldest that was tested. */
const OLDEST_CITUS = 13;

/** Ends the names of the functions that work on the shards. */
const SUFFIX = "_at_shards";

/** What functions of plain PostgreSQL do first in a Citus cluster. */
const FIRST_STATEMENTS: Readonly<Record<string, string>> = {
  admit: atWorker("admit", "p_items, p_while_suspended", "PERFORM keep_counts();"),
  bill: atWorker("bill", "p_server_id, p_not_after, p_lanes, p_ends, p_holds"),
  record_failures: atWorker("record_failures", "p_minutes, p_calls, p_max"),
  // They read or lock lanes before they write, see pin_schema.
  lock_lane: "PERFORM pin_schema();",
  prove: "PERFORM pin_schema();",
  require_lane: "PERFORM pin_schema();",
  store_attempts: "PERFORM pin_schema();",
  sweep: "PERFORM pin_schema();",
  lanes_in_use: atWorker("lanes_in_use", ""),
  create_ledger_partitions: "IF partitions_at_coordinator() THEN RETURN; END IF;",
};

/**
 * Each piece of an audit reads all its rows in one snapshot. Citus reads with one snapshot only at the worker of the schema, so
 * these work on the shards alone, and refuse to run at another node.
 */
const ONLY_AT_SHARDS = [
  "audit",
  "audit_archived_usage",
  "audit_grants",
  "audit_limits",
  "audit_operator_events",
  "audit_prices",
  "audit_usage",
  "stored_usage",
];

/**
 * The functions that decide batches of calls, and those that audit. Each has a variant that works on the shards directly. Citus does
 * not plan that one, so PostgreSQL keeps its plans.
 */
const AT_SHARDS = [
  "add_usage",
  "align_counters",
  "aligned_counters",
  "admit",
  "admitted_keys",
  "archived_heads",
  "auto_topup_month",
  "bill",
  "check_limits",
  "counters_of_call",
  "count_users",
  "expire_grants",
  "expired_credit",
  "grant_rests",
  "heartbeat",
  "lanes_in_use",
  "limited_plans",
  "limit_subjects",
  "name_users",
  "names_of_counters",
  "place_holds",
  "post_entries",
  "post_movement",
  "record_failures",
  "replay_grants",
  "rotated_keys",
  "seq_at",
  "settle_limits",
  "spend_grants",
  "start_auto_topup",
  "take_owed",
  "usage_differences",
  "usage_equals_ledger",
  "usage_of_entries",
  "usage_total",
  "write_auto_topup_event",
  "write_counters",
  "write_event",
  "write_limit_events",
  ...ONLY_AT_SHARDS,
];

/** A schema that Citus keeps on one of the workers of a cluster. */
const citusDistribution: Distribution = {
  require: requireCoordinator,
  prepareSession: changeAllNodes,
  distribute: distributeSchema,
  functionsFrom: functionsForCitus,
  withNames: nameShards,
  adapt: adaptFunctions,
};

export function distributionOf(engine: Engine): Distribution | undefined {
  return engine === "citus" ? citusDistribution : undefined;
}

type Cluster = { readonly version: string; readonly coordinates: boolean; readonly workers: number };

/** Refuses a database that is not the coordinator of a Citus cluster. */
async function requireCoordinator(sql: Sql): Promise<void> {
  const [citus] = await sql<{ version: string }[]>`
    SELECT extversion AS version FROM pg_extension WHERE extname = 'citus'`;
  if (!citus) {
    throw new MigrationError(
      'the engine of the cell is "citus", but its database does not have the extension: run CREATE EXTENSION citus on every node, and add the workers',
    );
  }
  const [nodes] = await sql<{ coordinates: boolean; workers: number }[]>`
    SELECT groupid = 0 AS coordinates,
           (SELECT count(*)::integer FROM pg_dist_node WHERE groupid <> 0 AND isactive AND shouldhaveshards) AS workers
    FROM pg_dist_local_group`;
  const problem = clusterProblem({ ...citus, coordinates: false, workers: 0, ...nodes });
  if (problem !== undefined) throw new MigrationError(problem);
}

/** Why the node cannot create a cell. */
export function clusterProblem({ version, coordinates, workers }: Cluster): string | undefined {
  if (Number.parseInt(version, 10) < OLDEST_CITUS) {
    return `Citus ${OLDEST_CITUS} or newer is needed, this is ${version}`;
  }
  if (!coordinates) return "the database is a worker of its Citus cluster; use the URL of the coordinator";
  if (workers === 0) return "the Citus cluster has no worker: run citus_add_node first";
  return undefined;
}

/** Makes the session change all nodes in one transaction, and with its search_path: Citus does not qualify all names. */
export async function changeAllNodes(sql: Sql): Promise<void> {
  await sql`SET citus.multi_shard_modify_mode = 'sequential'`;
  await sql`SET citus.propagate_set_commands = 'local'`;
}

/** Moves the tables of a new schema to a worker. */
async function distributeSchema(transaction: Sql, schema: string): Promise<void> {
  const [found] = await transaction`SELECT 1 FROM pg_dist_schema WHERE schemaid = ${schema}::regnamespace`;
  if (!found) await transaction`SELECT citus_schema_distribute(${schema}::regnamespace)`;
}

/** The functions of plain PostgreSQL, with what Citus needs. The names of the shards are filled in later, see `nameShards`. */
export function functionsForCitus(plain: readonly SqlFile[]): SqlFile[] {
  const own = readFunctionsIn(OWN);
  const names = new Set(own.map(({ name }) => name));
  const texts = [...plain.filter(({ name }) => !names.has(name)), ...own];
  const atShards = plain.filter(({ name }) => AT_SHARDS.includes(name)).map(variantAtShards);
  // Servers call these at any node.
  const atNodes = texts.map((file) => (ONLY_AT_SHARDS.includes(file.name) ? onlyAtShards(file) : withFirstStatement(file)));
  return [...atNodes, ...atShards];
}

/** Not STABLE: its snapshot could be from before the schema came to this worker. */
function onlyAtShards({ name, sql }: SqlFile): SqlFile {
  const tokens = tokensOf(sql);
  const header = tokens.slice(tokens.indexOf("CREATE"), tokens.indexOf("$$")).filter((token) => token !== "STABLE");
  const parameters = header.slice(0, header.indexOf("RETURNS")).filter((token) => token.startsWith("p_"));
  const body = `$$
BEGIN
  PERFORM require_schema();
  RETURN QUERY SELECT * FROM ${name}${SUFFIX}(${parameters.join(", ")});
END
$$;
`;
  return sqlFile(name, header.join("") + body);
}

function withFirstStatement(file: SqlFile): SqlFile {
  const first = FIRST_STATEMENTS[file.name];
  if (first === undefined) return file;
  const tokens = tokensOf(file.sql);
  const begin = tokens.indexOf("BEGIN", tokens.indexOf("$$"));
  return sqlFile(file.name, tokens.with(begin, `BEGIN\n  ${first}`).join(""));
}

/** At the worker that has the schema, the variant for the shards does everything. */
function atWorker(name: string, parameters: string, last = ""): string {
  return `IF pin_schema() THEN
    RETURN QUERY SELECT * FROM ${name}${SUFFIX}(${parameters});
    ${last}
    RETURN;
  END IF;`;
}

/** Servers may not call these: without pin_schema, they could use a shard that has moved. */
function variantAtShards({ name, sql }: SqlFile): SqlFile {
  const named = tokensOf(sql).map((token, i, tokens) => {
    if (token === "DEFINER") return "INVOKER";
    return tokens[i + 1] === "(" && AT_SHARDS.includes(token) ? `${token}${SUFFIX}` : token;
  });
  return sqlFile(`${name}${SUFFIX}`, named.join(""));
}

/** Words, spaces, comments, strings, and single characters of anything else. Bodies are divided too. */
function tokensOf(sql: string): string[] {
  return sql.match(/--.*|'[^']*'|\$\$|\w+|\s+|./g) ?? [];
}

/** Writes the names of the shards of a schema, which they keep when they move, in place of those of the tables. */
async function nameShards(sql: Sql, schema: string, files: readonly SqlFile[]): Promise<SqlFile[]> {
  const rows = await sql<{ name: string; id: string }[]>`
    SELECT c.relname AS name, d.shardid::text AS id FROM pg_dist_shard d JOIN pg_class c ON c.oid = d.logicalrelid
    WHERE c.relnamespace = ${schema}::regnamespace`;
  return withShards(files, new Map(rows.map(({ name, id }) => [name, id])));
}

/** What the name of a table follows. */
const BEFORE_TABLES = ["FROM", "JOIN", "INTO", "UPDATE", "USING", "TABLE"];

/** @param shards the id of the shard of each table */
export function withShards(files: readonly SqlFile[], shards: ReadonlyMap<string, string>): SqlFile[] {
  return files.map(({ name, sql }) => {
    const filled = sql.replaceAll(":shard_of_lanes", shards.get("lanes") ?? "");
    return sqlFile(name, name.endsWith(SUFFIX) ? tokensOf(filled).map(nameShard).join("") : filled);
  });

  function nameShard(token: string, i: number, tokens: readonly string[]): string {
    const before = tokens[i - 2] ?? "";
    const table = before === "CONSTRAINT" ? token.replace(/_pkey$/, "") : token;
    const isTable = before === "CONSTRAINT" || (BEFORE_TABLES.includes(before) && tokens[i + 1] !== "(");
    const shard = isTable ? shards.get(table) : undefined;
    return shard === undefined ? token : `${token}_${shard}`;
  }
}

/**
 * They call functions that read, within queries. They write nothing, so at worst a node that lost the schema has two
 * snapshots.
 */
const NESTED_READS = ["ledger_range"];

/** They lock the ledger. Citus would lock its tables at all nodes, and fail if one of them does. */
const LOCAL_LOCKS = ["audit", "audit_grants", "audit_limits", "audit_usage"].map((name) => `${name}${SUFFIX}`);

/** Citus creates functions on all nodes itself. It crashes with forced generic plans of distributed tables. */
async function adaptFunctions(transaction: Sql, schema: string): Promise<void> {
  const rows = await transaction<{ signature: string; name: string; is_generic: boolean }[]>`
    SELECT oid::regprocedure::text AS signature, proname AS name,
           coalesce('plan_cache_mode=force_generic_plan' = ANY (proconfig), false) AS is_generic
    FROM pg_proc WHERE pronamespace = ${schema}::regnamespace`;
  for (const { signature, name, is_generic } of rows) {
    if (is_generic && !name.endsWith(SUFFIX)) await transaction.unsafe(`ALTER FUNCTION ${signature} RESET plan_cache_mode`);
    if (NESTED_READS.includes(name)) {
      await transaction.unsafe(`ALTER FUNCTION ${signature} SET citus.allow_nested_distributed_execution = on`);
    }
    if (LOCAL_LOCKS.includes(name))
      await transaction.unsafe(`ALTER FUNCTION ${signature} SET citus.enable_ddl_propagation = off`);
  }
}
