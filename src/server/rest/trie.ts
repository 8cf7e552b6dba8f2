import type { Literal, Segment, Template } from "./http-rule.ts";

/** The route picked for a path, and the path segments as matched. */
type TrieMatch<Picked> = {
  readonly picked: Picked;
  readonly segments: readonly string[];
};

/**
 * Picks one of the routes of a node, by HTTP verb; undefined continues with the next node that matches the
 * path.
 */
type Pick<Route, Picked> = (routes: ReadonlyMap<string, Route>) => Picked | undefined;

export class DuplicateRouteError extends Error {}

type LiteralPath<Route> = {
  readonly routes: ReadonlyMap<string, Route>;
  readonly segments: readonly string[];
};

type Node<Route> = {
  readonly literals: Map<string, Node<Route>>;
  single: Node<Route> | undefined;
  rest: Node<Route> | undefined;
  /** By template verb ("" for none), then by HTTP verb. */
  readonly routes: Map<string, Map<string, Route>>;
};

/** Finds the routes of a path: a literal wins over "*", and "*" over "**". */
export class RouteTrie<Route> {
  readonly #root: Node<Route> = createNode();
  /** The nodes of paths that consist of literals, by path. They win over all others, so the trie is not searched. */
  readonly #literalPaths = new Map<string, LiteralPath<Route>>();

  /** `describe` names both routes of a conflict. */
  insert(template: Template, httpVerb: string, route: Route, describe: (route: Route) => string): void {
    let node = this.#root;
    for (const segment of template.segments) {
      if (segment.kind === "literal") node = child(node.literals, segment.text);
      else if (segment.kind === "*") node = node.single ??= createNode();
      else node = node.rest ??= createNode();
    }
    const byVerb = node.routes.get(template.verb ?? "") ?? new Map<string, Route>();
    node.routes.set(template.verb ?? "", byVerb);
    const taken = byVerb.get(httpVerb);
    if (taken !== undefined)
      throw new DuplicateRouteError(`${describe(taken)} and ${describe(route)} have the same route`);
    byVerb.set(httpVerb, route);
    const segments = template.segments.flatMap((segment) => (isPlain(segment) ? [segment.text] : []));
    if (template.verb === undefined && segments.length === template.segments.length)
      this.#literalPaths.set(`/${segments.join("/")}`, { routes: byVerb, segments });
  }

  *routes(): Iterable<Route> {
    const nodes = [this.#root];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      for (const byVerb of node.routes.values()) yield* byVerb.values();
      nodes.push(...node.literals.values(), ...[node.single, node.rest].filter((one) => one !== undefined));
    }
  }

  /**
   * Passes the nodes that match the path to `pick`, the most specific first, until it returns a result. The
   * segments stay percent-encoded; literals are compared decoded.
   */
  find<Picked>(path: string, pick: Pick<Route, Picked>): TrieMatch<Picked> | undefined {
    const literal = this.#literalPaths.get(path);
    const atLiteral = literal && pick(literal.routes);
    if (literal && atLiteral !== undefined) return { picked: atLiteral, segments: literal.segments };
    const segments = path.slice(1).split("/");
    const last = segments.length - 1;
    const text = segments[last] as string;
    const colon = text.lastIndexOf(":");
    if (colon >= 0 && colon < text.length - 1) {
      let isVerb = false;
      const match = this.#match(
        segments.with(last, text.slice(0, colon)),
        text.slice(colon + 1),
        (routes) => {
          isVerb = true;
          return pick(routes);
        },
      );
      // If a template with this verb matches the path, the path is not also matched without a verb.
      if (isVerb) return match;
    }
    return this.#match(segments, "", pick);
  }

  #match<Picked>(
    segments: readonly string[],
    verb: string,
    pick: Pick<Route, Picked>,
  ): TrieMatch<Picked> | undefined {
    // "/" has no segments.
    const matched = segments.length === 1 && segments[0] === "" ? [] : segments;
    const picked = walk(this.#root, matched, 0, verb, pick);
    return picked === undefined ? undefined : { picked, segments: matched };
  }
}

function walk<Route, Picked>(
  node: Node<Route>,
  segments: readonly string[],
  at: number,
  verb: string,
  pick: Pick<Route, Picked>,
): Picked | undefined {
  const pickAt = (place: Node<Route> | undefined) => {
    const routes = place?.routes.get(verb);
    return routes && pick(routes);
  };
  const segment = segments[at];
  // "**" also matches zero segments.
  if (segment === undefined) return pickAt(node) ?? pickAt(node.rest);
  const literal = node.literals.get(decodeLiteral(segment));
  const found = literal && walk(literal, segments, at + 1, verb, pick);
  if (found !== undefined) return found;
  // An empty segment is not a value: "/v1/keys/" is not "/v1/keys/{key_id}".
  if (segment === "") return undefined;
  return (node.single && walk(node.single, segments, at + 1, verb, pick)) ?? pickAt(node.rest);
}

/** A literal that a path can contain unchanged: a decoded "/" or ":" would look like a boundary. */
function isPlain(segment: Segment): segment is Literal {
  return segment.kind === "literal" && !/[/:]/.test(segment.text);
}

function decodeLiteral(segment: string): string {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

function createNode<Route>(): Node<Route> {
  return { literals: new Map(), single: undefined, rest: undefined, routes: new Map() };
}

function child<Route>(literals: Map<string, Node<Route>>, text: string): Node<Route> {
  const known = literals.get(text);
  if (known) return known;
  const created = createNode<Route>();
  literals.set(text, created);
  return created;
}
