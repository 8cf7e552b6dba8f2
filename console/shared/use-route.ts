import { createContext } from "preact";
import { useContext, useEffect, useRef, useState } from "preact/hooks";

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

/** Parameters that select one object or open a dialog. The others are filters. */
const SELECTIONS = ["id", "name", "entry", "add"] as const;

type Address = (place: string, bare: string) => string;

/**
 * The address of each place with the filters that it had last, for links that lead back to it. A link to the address that is shown is
 * bare, so that it removes the filters.
 */
export function useLastAddresses(place: string, isPlace: (route: Route) => boolean): Address {
  const route = useRoute();
  const last = useRef(new Map<string, string>());
  const shown = hrefOf(route.section, Object.fromEntries(route.params));
  if (isPlace(route)) last.current.set(place, shown);
  return (to, bare) => {
    const address = last.current.get(to);
    return address === undefined || address === shown ? bare : address;
  };
}

/** The addresses of the lists of sections. */
export function useSectionAddresses(current: string): (section: string) => string {
  const addressOf = useLastAddresses(
    current,
    ({ section, params }) => section === current && !SELECTIONS.some((name) => params.has(name)),
  );
  return (section) => addressOf(section, hrefOf(section));
}

const SectionAddresses = createContext<(section: string) => string>((section) => hrefOf(section));

export const SectionAddressProvider = SectionAddresses.Provider;

/** The address of the list of a section, as it was shown last. */
export function useSectionAddress(section: string): string {
  return useContext(SectionAddresses)(section);
}

function currentRoute(): Route {
  const [section = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  return { section, params: new URLSearchParams(query) };
}
