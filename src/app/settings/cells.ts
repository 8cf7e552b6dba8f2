import { z } from "zod";
import type { CellToMigrate } from "../../database/cells/migrate-cell.ts";
import { databaseUrlProblem, ENGINES } from "../../database/driver/endpoints.ts";
import { LANE_COUNT, type Lane, parseLanes } from "../../domain/lane.ts";
import { readBytes } from "../../domain/read-bytes.ts";
import { fieldOf, valueProblem } from "../../models/problems.ts";
import { ConfigError } from "../start-error.ts";

const MAX_FILE_BYTES = 131_072;
const MAX_CELLS = 64;
const NAME = /^[a-z][a-z0-9_]{0,30}$/;

const name = z.string().regex(NAME, "must be 1 to 31 lower-case letters, digits and _, and start with a letter");
const cellSchema = z.strictObject({
  name,
  database_url: z.string().superRefine((url, context) => {
    const problem = databaseUrlProblem(url);
    if (problem !== undefined) context.addIssue({ code: "custom", message: problem });
  }),
  schema: name.default("vx"),
  engine: z.enum(ENGINES).default("postgresql"),
  lanes: z.union([z.string(), z.number()]).default("").transform(lanesOf),
});
const fileSchema = z.strictObject({
  cells: z.array(cellSchema).min(1).max(MAX_CELLS).superRefine(requireDistinct),
});

/** The cells of the file; undefined without one. The first has everything that belongs to no account. Throws ConfigError. */
export async function readCells(path: string | undefined): Promise<readonly CellToMigrate[] | undefined> {
  if (path === undefined) return undefined;
  const refuse = (problems: readonly string[]) =>
    new ConfigError(problems.map((problem) => `VX_CELLS: ${path}: ${problem}`).join("\n"));
  const bytes = readBytes(path, MAX_FILE_BYTES, (problem) => new ConfigError(`VX_CELLS: ${problem}`));
  if (bytes.length > MAX_FILE_BYTES) throw refuse([`is larger than ${MAX_FILE_BYTES} bytes`]);
  // Loaded only for a file, because the parser takes 20 MiB.
  const { parse } = await import("yaml");
  let content: unknown;
  try {
    content = parse(bytes.toString("utf8"), { maxAliasCount: 0, logLevel: "error" });
  } catch (error) {
    throw refuse([(error as Error).message.split("\n")[0] ?? ""]);
  }
  const parsed = fileSchema.safeParse(content ?? {}, { error: valueProblem });
  if (!parsed.success) {
    throw refuse(parsed.error.issues.map((issue) => `${fieldOf(issue.path)}: ${issue.message}`));
  }
  return parsed.data.cells.map((cell) => ({
    name: cell.name,
    address: { kind: "url", url: cell.database_url },
    schema: cell.schema,
    engine: cell.engine,
    lanes: cell.lanes,
  }));
}

function lanesOf(text: string | number, context: z.RefinementCtx): readonly Lane[] {
  const lanes = parseLanes(String(text));
  if (lanes) return lanes;
  const message = `must be ranges of lanes such as 0-511, up to ${LANE_COUNT - 1}`;
  context.addIssue({ code: "custom", message });
  return [];
}

/** A name, a place and a lane belong to one cell. */
function requireDistinct(cells: readonly z.output<typeof cellSchema>[], context: z.RefinementCtx): void {
  const seen = new Map<string, number>();
  const refuse = (at: number, field: string, message: string) => context.addIssue({ code: "custom", path: [at, field], message });
  for (const [at, cell] of cells.entries()) {
    const claim = (field: string, value: string, what: string) => {
      const other = seen.get(value);
      if (other === undefined) seen.set(value, at);
      else if (other !== at) refuse(at, field, `${what} of the cell "${cells[other]?.name}"`);
    };
    claim("name", `name ${cell.name}`, "is the name");
    claim("schema", `place ${cell.database_url} ${cell.schema}`, "is with this URL the schema");
    for (const lane of cell.lanes) claim("lanes", `lane ${lane}`, `lane ${lane} is among the lanes`);
  }
}
