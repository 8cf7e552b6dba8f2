/** scheme://host[:port]. Schemes other than http and https are those of web views and browser extensions. */
const ORIGIN = /^[a-z][a-z\d+.-]*:\/\/(?:[\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i;

/** The error in a comma-separated list of origins; undefined if it is valid. */
export function originsProblem(list: string): string | undefined {
  const wrong = itemsOf(list).find((item) => toOrigin(item) === undefined);
  if (wrong === undefined) return undefined;
  return (
    `${JSON.stringify(wrong)} is not an origin; list origins such as ` +
    "https://app.example.com,http://localhost:5173, without paths and without wildcards"
  );
}

/** The origins of a valid list, as browsers send them. */
export function originsOf(list: string): readonly string[] {
  return itemsOf(list).flatMap((item) => toOrigin(item) ?? []);
}

function itemsOf(list: string): string[] {
  return list.split(",").map((item) => item.trim());
}

/** Browsers send hosts in lower case, and no default port. */
function toOrigin(text: string): string | undefined {
  if (!ORIGIN.test(text)) return undefined;
  if (!/^https?:/i.test(text)) return text.toLowerCase();
  return URL.canParse(text) ? new URL(text).origin : undefined;
}
