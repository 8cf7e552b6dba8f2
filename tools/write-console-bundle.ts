// Builds the pages in console/ and writes them to gen/console: one script and one style sheet for each page, compressed,
// their names, and the licenses of the packages in them.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build, type Rolldown } from "vite";
import { notices } from "./notices.ts";

const PAGES = ["account", "operator"] as const;
const FOLDER = "gen/console";

/** For the script and the style sheet of a page, as gzip. */
const MAX_PAGE_BYTES = 250_000;

// Vite takes the mode of the packages from here; a test runner that starts this program sets another one.
process.env.NODE_ENV = "production";

rmSync(FOLDER, { recursive: true, force: true });
mkdirSync(FOLDER, { recursive: true });
const names: Record<string, { readonly script: string; readonly style: string }> = {};
const packages = new Set<string>();
for (const page of PAGES) {
  const { chunk, style } = await bundle(page);
  const bytes = write(chunk.fileName, chunk.code) + write(style.fileName, style.source);
  if (bytes > MAX_PAGE_BYTES) throw new Error(`${page} has ${bytes} bytes, more than ${MAX_PAGE_BYTES}`);
  names[page] = { script: chunk.fileName, style: style.fileName };
  for (const name of packagesIn(chunk)) packages.add(name);
}
writeFileSync(`${FOLDER}/pages.json`, `${JSON.stringify(names, null, 2)}\n`);
writeFileSync(`${FOLDER}/licenses.txt`, notices("the pages", [...packages].sort()));

/** A page has one script and one style sheet: the pages are on different listeners, so they would share no cached file. */
async function bundle(page: string): Promise<{ readonly chunk: Rolldown.OutputChunk; readonly style: Rolldown.OutputAsset }> {
  const result = await build({
    configFile: false,
    root: "console",
    publicDir: false,
    logLevel: "warn",
    build: {
      write: false,
      target: "es2022",
      modulePreload: false,
      rolldownOptions: {
        input: { [page]: `console/${page}/main.tsx` },
        output: { entryFileNames: "[name]-[hash].js", assetFileNames: "[name]-[hash][extname]" },
      },
    },
  });
  if (!("output" in result)) throw new Error(`the build of ${page} has more than one result`);
  const [chunk, style, ...others] = result.output;
  if (style?.type !== "asset" || others.length > 0)
    throw new Error(`the build of ${page} has other files than one script and one style sheet`);
  return { chunk, style };
}

/** Returns the size as gzip. */
function write(name: string, source: string | Uint8Array): number {
  const content = Buffer.from(source);
  const gzipped = gzipSync(content, { level: 9 });
  const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
  writeFileSync(`${FOLDER}/${name}.gz`, gzipped);
  writeFileSync(`${FOLDER}/${name}.br`, brotliCompressSync(content, { params }));
  return gzipped.length;
}

function packagesIn(chunk: Rolldown.OutputChunk): string[] {
  return Object.keys(chunk.modules).flatMap((id) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []);
}
