import { useEffect, useState } from "preact/hooks";

/** What the part of the URL after "#" selects: a section, and what it shows. It never contains a secret. */
export type Route = { readonly section: string; readonly params: URLSearchParams };

export function hrefOf(section: string, params: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(params).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return query === "" ? `#/${section}` : `#/${section}?${query}`;
}

export function navigate(href: string): void {
  location.hash = href;
}

export function useRoute(): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  const [section = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  return { section, params: new URLSearchParams(query) };
}
