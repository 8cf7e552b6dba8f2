// Writes the script of the reference page, @scalar/api-reference with corrections, to gen/reference, with the licenses
// of every package in it. With its dependencies, the package would make an installation almost twice as large.
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";

const PACKAGE = "@scalar/api-reference";
const BUNDLE = `node_modules/${PACKAGE}/dist/browser/standalone.js`;

/** The copyright lines of packages under the MIT license that contain no copy of it or are not installed. */
const MIT_COPYRIGHTS: Readonly<Record<string, string>> = {
  "@headlessui/vue": "Copyright (c) 2020 Tailwind Labs",
  "@replit/codemirror-css-color-picker": "Copyright (c) 2021 Replit",
  "unist-util-find-after": "Copyright (c) 2015 Titus Wormer <tituswormer@gmail.com>",
  "vue-demi": "Copyright (c) 2020-present, Anthony Fu",
  tailwindcss: "Copyright (c) Tailwind Labs, Inc.",
};

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

const MIT = `Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit
persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.`;

type Manifest = {
  readonly version: string;
  readonly license?: string;
  readonly dependencies?: Readonly<Record<string, string>>;
};

const { version } = manifestOf(PACKAGE) as Manifest;
const script = corrected(readFileSync(BUNDLE, "utf8").replace(/\n\/\/# sourceMappingURL=.*\s*$/, "\n"));
const header = `/*! ${PACKAGE} ${version}, MIT. Licenses of the packages in it: /docs/assets/licenses.txt */\n`;
mkdirSync("gen/reference", { recursive: true });
writeFileSync("gen/reference/reference.js", header + script);
writeFileSync("gen/reference/licenses.txt", notices(packagesInBundle()));

function corrected(text: string): string {
  return CORRECTIONS.reduce((current, { from, to }) => {
    const parts = current.split(from);
    if (parts.length !== 2)
      throw new Error(`the script contains ${JSON.stringify(from)} ${parts.length - 1} times`);
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

/** One section for each different license text, headed by the packages under it. */
function notices(packages: readonly string[]): string {
  const packagesByText = new Map<string, string[]>();
  for (const name of packages) {
    const text = licenseOf(name);
    packagesByText.set(text, [...(packagesByText.get(text) ?? []), name]);
  }
  const sections = [...packagesByText].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`);
  return [`Licenses of the packages in reference.js\n`, ...sections].join(`\n${"-".repeat(80)}\n\n`);
}

function licenseOf(name: string): string {
  const folder = `node_modules/${name}`;
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const file = files.find((one) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(one));
  if (file !== undefined) return readFileSync(`${folder}/${file}`, "utf8").replaceAll("\r", "").trim();
  const copyright = name.startsWith("@scalar/") ? "Copyright (c) 2023-present Scalar" : MIT_COPYRIGHTS[name];
  if (copyright === undefined || (manifestOf(name)?.license ?? "MIT") !== "MIT") {
    throw new Error(`${name} is in the bundle of the reference, and its license is unknown`);
  }
  return `MIT License\n\n${copyright}\n\n${MIT}`;
}

function manifestOf(name: string): Manifest | undefined {
  const file = `node_modules/${name}/package.json`;
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Manifest) : undefined;
}
