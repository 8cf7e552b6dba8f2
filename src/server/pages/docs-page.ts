import { readFile } from "node:fs/promises";
import { ERRORS, RETRIED_IF, type Reason } from "../../domain/errors.ts";
import type { Model } from "../../domain/model.ts";
import { exampleModels } from "../../models/built-in.ts";
import { fill, type Html, html } from "./html.ts";
import { type Product, siteValues } from "./site-header.ts";

const FILE = new URL("docs.html", import.meta.url);
const DOCUMENT = new URL("../../../gen/openapi.json", import.meta.url);

/** The documentation: a quick start, the errors and a list of the methods. The script shows the reference of a method that is chosen. */
export async function docsPage(models: readonly Model[], product: Product): Promise<(url: string) => string> {
  const [page, document] = await Promise.all([readFile(FILE, "utf8"), readFile(DOCUMENT, "utf8")]);
  const { model, missing } = exampleModels(models).generation;
  const { supportUrl } = product;
  const values = {
    ...siteValues(product, "/docs"),
    model: model.id,
    note: missing === undefined ? "" : html`<p class="note">${missing.replaceAll("`", "")}</p>`,
    support: supportUrl === undefined ? "the operator of this service" : html`<a href="${supportUrl}">the support</a>`,
    errors: errorRows(),
    methods: methodLists(JSON.parse(document) as OpenApi),
  };
  return (url) => {
    const { host, protocol } = new URL(url);
    return fill(page, { ...values, url, host, plaintext: protocol === "https:" ? "" : "-plaintext " });
  };
}

/** Only operators and the customer page get these. */
const NOT_OF_KEYS: ReadonlySet<Reason> = new Set([
  "invalid_operator_token",
  "insufficient_role",
  "invalid_report_signature",
  "last_admin",
  "invalid_session",
  "sign_up_refused",
  "invalid_invitation",
  "member_limit_reached",
  "last_owner",
]);

/** What to do about errors whose message in the table of errors does not say it. */
const ADVICE: Partial<Record<Reason, string>> = {
  invalid_argument: "The message names the fields. Correct them.",
  insufficient_scope: "Use a key with the scope that the message names.",
  address_not_allowed: "Call from an allowed address, or change allowed_cidrs of the key.",
  method_not_allowed: "Use a method of the header Allow.",
  deadline_exceeded: "Set a longer deadline, or stream the reply. What was generated until then is charged.",
  unimplemented: "Use another method.",
};

/** The official SDKs of OpenAI and Anthropic retry these statuses, unless the header x-should-retry decides. */
function retriesOf(reason: Reason): string {
  const condition = RETRIED_IF[reason];
  if (condition !== undefined) return `If ${condition}`;
  const { status, shouldRetry } = ERRORS[reason];
  return (shouldRetry ?? (status === 409 || status === 429 || status >= 500)) ? "Yes" : "No";
}

function errorRows(): Html[] {
  const reasons = (Object.keys(ERRORS) as Reason[]).filter((reason) => !NOT_OF_KEYS.has(reason));
  const sorted = reasons.toSorted((one, other) => ERRORS[one].status - ERRORS[other].status);
  return sorted.map((reason) => {
    const { status, code, message } = ERRORS[reason];
    // The first sentence is the meaning, the others say what to do.
    const [meaning = message] = /^.*?\.(?= |$)/.exec(message) ?? [];
    const advice = ADVICE[reason] ?? message.slice(meaning.length).trim();
    return html`
            <tr id="${reason}">
              <th scope="row"><code>${reason}</code><small>${code}</small></th>
              <td data-label="Status">${String(status)}</td>
              <td data-label="Meaning">${withCode(meaning)}</td>
              <td data-label="What to do">${withCode(advice)}</td>
              <td data-label="SDKs retry">${retriesOf(reason)}</td>
            </tr>`;
  });
}

/** A text with names in backticks. */
function withCode(text: string): Html[] {
  return text.split("`").map((part, i) => (i % 2 === 0 ? html`${part}` : html`<code>${part}</code>`));
}

type OpenApi = {
  readonly tags: readonly { readonly name: string; readonly "x-displayName": string }[];
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly tags: readonly string[]; readonly summary: string }>>>
  >;
};

/** The methods by service, each with a link to its part of the reference. */
function methodLists({ tags, paths }: OpenApi): Html[] {
  const methods = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(
      ([
        verb,
        {
          tags: [tag = ""],
          summary,
        },
      ]) => ({
        tag,
        path,
        verb: verb.toUpperCase(),
        summary,
      }),
    ),
  );
  return tags.map(
    ({ name, "x-displayName": title }) => html`
        <div>
          <h3>${title}</h3>
          <ul>${methods
            .filter(({ tag }) => tag === name)
            .map(
              ({ verb, path, summary }) => html`
            <li><a href="#tag/${name.toLowerCase()}/${verb}${path}">${summary}</a> <code>${verb} ${path}</code></li>`,
            )}
          </ul>
        </div>`,
  );
}
