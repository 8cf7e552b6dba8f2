import { isMap, isScalar, isSeq, LineCounter, type ParsedNode, parseDocument } from "yaml";
import type { z } from "zod";
import type { Model, RemoteSettings } from "../domain/model.ts";
import type { Prices } from "../domain/price.ts";
import { modelsSchema, pricesFileSchema } from "./models-schema.ts";
import { fieldOf, ModelsError, type Path, valueAt, valueProblem } from "./problems.ts";
import { readUpstreamKey, UpstreamKeyError } from "./upstream-key.ts";

const MAX_ALIASES = 1_000;
const MAX_MISTAKES = 20;

type Env = Readonly<Record<string, string | undefined>>;

type Mistake = { readonly path: Path; readonly message: string };

/**
 * Parses all models, or throws. `file` is the file name in error messages. The keys of upstreams must
 * be set; the models do not contain them.
 */
export function parseModels(text: string, file: string, env: Env): readonly Model[] {
  const { values, content, refuse } = parseFile(text, file, () => modelsSchema);
  const mistakes = [...sameNames(values.models), ...wrongKeys(values.models, content, env)];
  if (mistakes.length > 0) throw refuse(mistakes);
  return values.models;
}

/** Parses a file with the prices of a model, in the form that they have in models.yaml, or throws. */
export function parsePrices(text: string, file: string): Prices {
  return parseFile(text, file, pricesFileSchema).values;
}

/** What a file has, and an error that names the lines of mistakes. */
type ParsedFile<Values> = {
  readonly values: Values;
  readonly content: unknown;
  readonly refuse: (mistakes: readonly Mistake[]) => ModelsError;
};

function parseFile<Schema extends z.ZodType>(
  text: string,
  file: string,
  schemaOf: (content: unknown) => Schema,
): ParsedFile<z.output<Schema>> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: "error" });
  if (document.errors.length > 0) {
    throw listed(document.errors.map(({ pos, message }) => `${file}:${lines.linePos(pos[0]).line}: ${oneLine(message)}`));
  }
  let content: unknown;
  try {
    content = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
  } catch (error) {
    throw listed([`${file}: ${oneLine((error as Error).message)}`]);
  }
  const refuse = (mistakes: readonly Mistake[]) =>
    listed(
      mistakes.map(({ path, message }) => {
        const field = path.length === 0 ? "" : `${fieldOf(path)}: `;
        return `${file}:${lineOf(lines, document.contents, path)}: ${field}${message}`;
      }),
    );
  const parsed = schemaOf(content).safeParse(content, { error: valueProblem });
  if (!parsed.success) throw refuse(parsed.error.issues.flatMap((issue) => mistakesOf(issue, content)));
  return { values: parsed.data, content, refuse };
}

/** Reports each unknown field as a mistake with its own line. */
function mistakesOf(issue: z.core.$ZodIssue, content: unknown): Mistake[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ path: [...issue.path, key], message: "is not a known field" }));
  }
  const isMissing = issue.code !== "custom" && valueAt(content, issue.path) === undefined;
  return [{ path: issue.path, message: isMissing ? "is missing" : issue.message }];
}

/** An id or alias names one model. */
function sameNames(models: readonly Model[]): Mistake[] {
  const seen = new Set<string>();
  const isNew = (name: string) => seen.size < seen.add(name).size;
  const repeated = ({ name, path }: { name: string; path: Path }): Mistake[] =>
    isNew(name) ? [] : [{ path, message: `"${name}" is used twice` }];
  const ids = models.flatMap(({ id }, at) => repeated({ name: id, path: ["models", at, "id"] }));
  const aliases = models.flatMap((model, at) =>
    model.aliases.flatMap((name, index) => repeated({ name, path: ["models", at, "aliases", index] })),
  );
  return [...ids, ...aliases];
}

function wrongKeys(models: readonly Model[], content: unknown, env: Env): Mistake[] {
  return models.flatMap(({ upstreams }, at) =>
    upstreams.flatMap((upstream, index) => {
      const message = upstream.kind === "sandbox" ? undefined : keyProblem(upstream, env);
      if (message === undefined) return [];
      const single = ["models", at, "upstream"];
      const place = valueAt(content, single) === undefined ? ["models", at, "upstreams", index] : single;
      const field = "apiKeyFile" in upstream && upstream.apiKeyFile !== undefined ? "api_key_file" : "api_key_env";
      return [{ path: [...place, field], message }];
    }),
  );
}

function keyProblem(upstream: RemoteSettings, env: Env): string | undefined {
  try {
    readUpstreamKey(upstream, env);
    return undefined;
  } catch (error) {
    if (error instanceof UpstreamKeyError) return error.message;
    throw error;
  }
}

function listed(lines: readonly string[]): ModelsError {
  const more = lines.length - MAX_MISTAKES;
  return new ModelsError([...lines.slice(0, MAX_MISTAKES), ...(more > 0 ? [`… and ${more} more`] : [])].join("\n"));
}

function oneLine(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

/** The line of a field; for a missing field, the line of the object it is missing from. */
function lineOf(lines: LineCounter, root: ParsedNode | null, path: Path): number {
  let node: unknown = root;
  let offset = root?.range[0] ?? 0;
  for (const key of path) {
    if (isMap<ParsedNode, unknown>(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && item.key.value === key);
      if (!pair) break;
      // The position of a field is that of its name; the position of a list item is its start.
      offset = pair.key.range[0];
      node = pair.value;
    } else if (isSeq<ParsedNode>(node) && typeof key === "number" && node.items[key]) {
      offset = node.items[key].range[0];
      node = node.items[key];
    } else break;
  }
  return lines.linePos(offset).line;
}
