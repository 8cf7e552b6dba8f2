// The notices of bundled third-party code.
import { existsSync, readdirSync, readFileSync } from "node:fs";

/** The copyright lines of packages under the MIT license that contain no copy of it or are not installed. */
const MIT_COPYRIGHTS: Readonly<Record<string, string>> = {
  "@headlessui/vue": "Copyright (c) 2020 Tailwind Labs",
  "@replit/codemirror-css-color-picker": "Copyright (c) 2021 Replit",
  "unist-util-find-after": "Copyright (c) 2015 Titus Wormer <tituswormer@gmail.com>",
  "vue-demi": "Copyright (c) 2020-present, Anthony Fu",
  tailwindcss: "Copyright (c) Tailwind Labs, Inc.",
};

/** The copyright lines of packages under the Apache License 2.0 that contain no copy of it. */
const APACHE_COPYRIGHTS: Readonly<Record<string, string>> = {
  "@bufbuild/protobuf": "Copyright 2021-2026 Buf Technologies, Inc.",
  "@bufbuild/protovalidate": "Copyright 2024-2026 Buf Technologies, Inc.",
  "@connectrpc/connect": "Copyright 2021-2026 The Connect Authors",
  "@connectrpc/connect-web": "Copyright 2021-2026 The Connect Authors",
};

/** A file of @bufbuild/protobuf that begins with the license of the Google code in it. */
const GOOGLE_CODE = "node_modules/@bufbuild/protobuf/dist/esm/wire/varint.js";

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
};

const SEPARATOR = `\n${"-".repeat(80)}\n\n`;

/** One section for each different license text, headed by the packages under it. */
export function notices(bundle: string, packages: readonly string[]): string {
  const packagesByText = new Map<string, string[]>();
  for (const name of packages) {
    const text = licenseOf(name);
    packagesByText.set(text, [...(packagesByText.get(text) ?? []), name]);
  }
  const sections = [...packagesByText].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`);
  return [`Licenses of the packages in ${bundle}\n`, ...sections].join(SEPARATOR);
}

/** The packages that a file of notices names. */
export function packagesOfNotices(text: string): string[] {
  const [, ...sections] = text.split(SEPARATOR);
  return sections.flatMap((section) => section.slice(0, section.indexOf("\n")).split(", "));
}

export function manifestOf(name: string): Manifest | undefined {
  const file = `node_modules/${name}/package.json`;
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as Manifest) : undefined;
}

function licenseOf(name: string): string {
  const folder = `node_modules/${name}`;
  const files = existsSync(folder) ? readdirSync(folder) : [];
  const file = files.find((one) => /^(licen[cs]e|copying)(\.(md|txt))?$/i.test(one));
  if (file !== undefined) return readFileSync(`${folder}/${file}`, "utf8").replaceAll("\r", "").trim();
  const apache = APACHE_COPYRIGHTS[name];
  if (apache !== undefined) return apacheLicense(name, apache);
  const copyright = name.startsWith("@scalar/") ? "Copyright (c) 2023-present Scalar" : MIT_COPYRIGHTS[name];
  if (copyright === undefined || (manifestOf(name)?.license ?? "MIT") !== "MIT") {
    throw new Error(`the license of ${name}, which is bundled, is unknown`);
  }
  return `MIT License\n\n${copyright}\n\n${MIT}`;
}

function apacheLicense(name: string, copyright: string): string {
  const [terms = ""] = readFileSync("LICENSE", "utf8").split(/^ *APPENDIX/m);
  const text = `${copyright}\n\n${terms.trimEnd()}`;
  if (name !== "@bufbuild/protobuf") return text;
  const lines = readFileSync(GOOGLE_CODE, "utf8").split("\n");
  const comment = lines.slice(
    0,
    lines.findIndex((line) => !line.startsWith("//")),
  );
  return `${text}\n\n${comment.map((line) => line.replace(/^\/\/ ?/, "")).join("\n")}`;
}
