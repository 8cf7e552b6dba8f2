import { useEffect, useState } from "preact/hooks";

/** The section and its parameters, from the part of the URL after "#". It never contains a secret. */
export type Route = { readonly section: string; readonly params: URLSearchParams };

export function hrefOf(section: string, params: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(params).filter(([, value]) => value !== "");
  const query = new URLSearchParams(given).toString();
  return query === "" ? `#/${section}` : `#/${section}?${query}`;
}

export function navigate(href: string): void {
  location.hash = href;
}

/** Changes parameters of the section in a new address, so that the Back button undoes it. */
export function changeParams(section: string, part: Readonly<Record<string, string>>): void {
  // The address also has changes that are not rendered yet.
  const current = currentRoute();
  const others = current.section === section ? Object.fromEntries(current.params) : {};
  navigate(hrefOf(section, { ...others, ...part }));
}

export function useRoute(): Route {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const update = () => setRoute(currentRoute());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}

function currentRoute(): Route {
  const [section = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { section, params: new URLSearchParams(query) };
}
