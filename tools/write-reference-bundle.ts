// Writes the script of the reference page, @scalar/api-reference with corrections, to gen/reference, with the licenses
// of every package in it. With its dependencies, the package would make an installation almost twice as large.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { manifestOf, notices } from "./notices.ts";

const PACKAGE = "@scalar/api-reference";
const BUNDLE = `node_modules/${PACKAGE}/dist/browser/standalone.js`;

/** Corrections of the script. Each text occurs exactly once. */
const CORRECTIONS: readonly { readonly from: string; readonly to: string }[] = [
  // The footer of the page links the licenses of the library instead of its site.
  {
    from: "href:`https://www.scalar.com`,rel:`noopener noreferrer`,target:`_blank`}",
    to: "href:`/docs/assets/licenses.txt`}",
  },
  { from: "k(_).translate(`footer.poweredByScalar`)", to: "`Licenses`" },
  // A copy button has no name while its label is hidden.
  {
    from: "ai({type:`button`},k(n)(`group/copy-button",
    to: 'ai({type:`button`,"aria-label":`Copy`},k(n)(`group/copy-button',
  },
];

/** Scalar's files contain code of their dependencies: these maps name them. */
const CHUNKS = "node_modules/@scalar/code-highlight/dist/chunks";

/** Packages whose styles and icons are in Scalar's files; no source map names them. */
const STYLES_AND_ICONS = ["tailwindcss", "@phosphor-icons/core"];

const version = manifestOf(PACKAGE)?.version;
const script = corrected(readFileSync(BUNDLE, "utf8").replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"));
const header = `/*! ${PACKAGE} ${version}, MIT. Licenses of the packages in it: /docs/assets/licenses.txt */\n`;
mkdirSync("gen/reference", { recursive: true });
writeFileSync("gen/reference/reference.js", header + script);
writeFileSync("gen/reference/licenses.txt", notices("reference.js", packagesInBundle()));

function corrected(text: string): string {
  return CORRECTIONS.reduce((current, { from, to }) => {
    const parts = current.split(from);
    if (parts.length !== 2) throw new Error(`the script contains ${JSON.stringify(from)} ${parts.length - 1} times`);
    return parts.join(to);
  }, text);
}

/** The packages whose files are in the bundle, by the source maps. */
function packagesInBundle(): string[] {
  const chunks = readdirSync(CHUNKS).filter((file) => file.endsWith(".js.map"));
  const names = new Set(STYLES_AND_ICONS);
  for (const map of [`${BUNDLE}.map`, ...chunks.map((file) => `${CHUNKS}/${file}`)]) {
    const { sources } = JSON.parse(readFileSync(map, "utf8")) as { sources: readonly string[] };
    for (const source of sources) {
      const [, installed] = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source) ?? [];
      const [, scalar] = /^(?:\.\.\/){3}([a-z][^/]*)\//.exec(source) ?? [];
      names.add(installed ?? (scalar === undefined ? PACKAGE : `@scalar/${scalar}`));
    }
  }
  return [...names].sort();
}
