/**
 * Path templates, as google/api/http.proto defines them:
 *
 *     Template  = "/" Segments [ ":" LITERAL ] ;
 *     Segments  = Segment { "/" Segment } ;
 *     Segment   = "*" | "**" | LITERAL | Variable ;
 *     Variable  = "{" FieldPath [ "=" Segments ] "}" ;
 *     FieldPath = IDENT { "." IDENT } ;
 *
 * "**" must be the last segment. A variable without "=" is "{field=*}".
 */
export type Template = {
  /** Literals, "*" and "**"; variables are replaced by their segments. */
  readonly segments: readonly Segment[];
  readonly variables: readonly Variable[];
  /** The text after the last ":", if any. */
  readonly verb: string | undefined;
};

export type Literal = { readonly kind: "literal"; readonly text: string };

export type Segment = Literal | { readonly kind: "*" | "**" };

/** The segments from start to end (exclusive) are the value of the field. */
export type Variable = {
  readonly fieldPath: string;
  readonly start: number;
  readonly end: number;
  /** Ends in "**": matches all remaining segments. */
  readonly openEnded: boolean;
  /** More than one segment: "%2F" stays encoded, so that the value can be split again. */
  readonly multiple: boolean;
};

export class TemplateError extends Error {}

const IDENT = /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$/;
const LITERAL = /^(?:[\w.~!$&'()+,;@-]|%[0-9A-Fa-f]{2})+$/;

export function parseTemplate(text: string): Template {
  const segments: Segment[] = [];
  const variables: Variable[] = [];
  const parser = { rest: text };

  const fail = (what: string) => new TemplateError(`the template "${text}" ${what} at "${parser.rest}"`);
  const accept = (token: string) => {
    if (!parser.rest.startsWith(token)) return false;
    parser.rest = parser.rest.slice(token.length);
    return true;
  };
  const readUntil = (stops: RegExp) => {
    const end = parser.rest.search(stops);
    const taken = end < 0 ? parser.rest : parser.rest.slice(0, end);
    parser.rest = parser.rest.slice(taken.length);
    return taken;
  };
  const parseSegments = (inVariable: boolean) => {
    do {
      if (segments.at(-1)?.kind === "**") throw fail('has a segment after "**"');
      if (accept("**")) segments.push({ kind: "**" });
      else if (accept("*")) segments.push({ kind: "*" });
      else if (!inVariable && accept("{")) parseVariable();
      else {
        const literal = readUntil(/[/:{}*=]/);
        if (!LITERAL.test(literal)) throw fail("has no segment");
        const text = decoded(literal);
        if (text === undefined) throw fail("has a literal that is not valid UTF-8");
        segments.push({ kind: "literal", text });
      }
    } while (accept("/"));
  };
  const parseVariable = () => {
    const fieldPath = readUntil(/[=}]/);
    if (!IDENT.test(fieldPath)) throw fail("has no field name");
    if (variables.some((other) => other.fieldPath === fieldPath)) throw fail(`names "${fieldPath}" twice`);
    const start = segments.length;
    if (accept("=")) parseSegments(true);
    else segments.push({ kind: "*" });
    if (!accept("}")) throw fail('misses "}"');
    const openEnded = segments.at(-1)?.kind === "**";
    const multiple = openEnded || segments.length - start > 1;
    variables.push({ fieldPath, start, end: segments.length, openEnded, multiple });
  };

  if (!accept("/")) throw fail('does not begin with "/"');
  parseSegments(false);
  let verb: string | undefined;
  if (accept(":")) {
    verb = readUntil(/[/:{}*=]/);
    if (!LITERAL.test(verb)) throw fail('has no verb after ":"');
  }
  if (parser.rest !== "") throw fail("has text after its end");
  return { segments, variables, verb };
}

function decoded(literal: string): string | undefined {
  try {
    return decodeURIComponent(literal);
  } catch {
    return undefined;
  }
}
