import type { Template } from "./template.ts";

/** Where a path leads: the routes by HTTP verb, and the segments as they were matched. */
type TrieMatch<Route> = {
  readonly routes: ReadonlyMap<string, Route>;
  readonly segments: readonly string[];
};

export class DuplicateRouteError extends Error {}

type Node<Route> = {
  readonly literals: Map<string, Node<Route>>;
  single: Node<Route> | undefined;
  rest: Node<Route> | undefined;
  /** By template verb ("" for none), then by HTTP verb. */
  readonly routes: Map<string, Map<string, Route>>;
};

/** Finds the route of a path in time proportional to its length: a literal beats "*", and that beats "**". */
export class RouteTrie<Route> {
  readonly #root: Node<Route> = createNode();

  /** Adds a route; `describe` names both when the place is taken. */
  add(template: Template, httpVerb: string, route: Route, describe: (route: Route) => string): void {
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
  }

  /** Every route there is. */
  *routes(): Iterable<Route> {
    const nodes = [this.#root];
    for (let node = nodes.pop(); node; node = nodes.pop()) {
      for (const byVerb of node.routes.values()) yield* byVerb.values();
      nodes.push(...node.literals.values(), ...[node.single, node.rest].filter((one) => one !== undefined));
    }
  }

  /** The segments are percent-encoded, as they came; literals are compared decoded. */
  find(path: string): TrieMatch<Route> | undefined {
    const segments = path.slice(1).split("/");
    const last = segments.length - 1;
    const colon = (segments[last] as string).lastIndexOf(":");
    if (colon >= 0) {
      const verb = (segments[last] as string).slice(colon + 1);
      const without = segments.with(last, (segments[last] as string).slice(0, colon));
      const routes = walk(this.#root, without, 0, verb);
      if (routes && verb !== "") return { routes, segments: without };
    }
    const routes = walk(this.#root, segments, 0, "");
    return routes && { routes, segments };
  }
}

function walk<Route>(
  node: Node<Route>,
  segments: readonly string[],
  at: number,
  verb: string,
): ReadonlyMap<string, Route> | undefined {
  const segment = segments[at];
  // "**" takes no segment, too.
  if (segment === undefined) return node.routes.get(verb) ?? node.rest?.routes.get(verb);
  const literal = node.literals.get(decodeLiteral(segment));
  const found = literal && walk(literal, segments, at + 1, verb);
  if (found) return found;
  // An empty segment is no value: "/v1/keys/" is not "/v1/keys/{key_id}".
  if (segment === "") return undefined;
  return (node.single && walk(node.single, segments, at + 1, verb)) ?? node.rest?.routes.get(verb);
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
