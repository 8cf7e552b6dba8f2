import { registerHooks } from "node:module";
import type postgres from "postgres";
import { VARIANTS } from "./variants.ts";

/** Plants the bug in the server's code, in this process only. */
export function plantInCode(name: string): void {
  const patch = VARIANTS.find((variant) => variant.name === name)?.code;
  if (!patch) return;
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      if (!url.endsWith(`/${patch.file}`)) return loaded;
      return { ...loaded, source: withBug(String(loaded.source), patch, patch.file) };
    },
  });
}

/** Plants the bug in the functions of one database. */
export async function plantInDatabase(owner: postgres.Sql, name: string): Promise<void> {
  const variant = VARIANTS.find((one) => one.name === name);
  for (const patch of variant?.sql ?? []) await replaceInFunction(owner, patch.function, patch);
  if (variant?.statement !== undefined) await owner.unsafe(variant.statement);
}

/** Returns the previous text of the function. */
export async function replaceInFunction(
  owner: postgres.Sql,
  name: string,
  patch: { readonly find: string; readonly put: string },
): Promise<string> {
  const [row] = await owner<{ text: string }[]>`
    SELECT pg_get_functiondef(p.oid) AS text FROM pg_proc p
    WHERE p.pronamespace = 'vx'::regnamespace AND p.proname = ${name}`;
  const text = row?.text ?? "";
  const changed = withBug(text, patch, `vx.${name}`);
  // The text names types without their schema.
  await owner.begin(async (transaction) => {
    await transaction`SET LOCAL search_path = vx, pg_temp`;
    await transaction.unsafe(changed);
  });
  return text;
}

/** Throws if the text that the bug replaces is missing. */
export function withBug(text: string, { find, put }: { readonly find: string; readonly put: string }, place: string): string {
  if (!text.includes(find)) throw new Error(`${place} does not contain "${find}": update the planted bug`);
  return text.replaceAll(find, put);
}
