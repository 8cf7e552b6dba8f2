import { registerHooks } from "node:module";

type Patch = { readonly file: string; readonly find: string; readonly put: string };

/** Bugs of the server's own code, by name: the text that is replaced in one module, in this process alone. */
const PATCHES: Readonly<Record<string, Patch>> = {
  "answered before it is settled": {
    file: "src/metering/generation.ts",
    find: "const { outcome, balanceMicros } = await this.#settle();",
    put: `const outcome = await this.#outcome();
    const balanceMicros = 0n;
    setTimeout(() => this.#settle(), 250);`,
  },
  "the key is logged": {
    file: "src/gate/bearer.ts",
    find: "",
    put: "",
  },
};

export function plantBug(name: string): void {
  const patch = PATCHES[name];
  if (!patch) return;
  registerHooks({
    load: (url, context, next) => {
      const loaded = next(url, context);
      if (!url.endsWith(`/${patch.file}`)) return loaded;
      const source = String(loaded.source);
      if (!source.includes(patch.find))
        throw new Error(`${patch.file} has no place for the bug "${name}" any more`);
      return { ...loaded, source: source.replace(patch.find, patch.put) };
    },
  });
}
