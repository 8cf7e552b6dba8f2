import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { PRODUCT } from "./product.ts";
import { SectionAddressProvider, useSectionAddresses } from "./use-route.ts";

export type Section = { readonly id: string; readonly label: string };

type FrameProps = {
  readonly sections: readonly Section[];
  readonly current: string;
  /** A field that finds what the sections contain. */
  readonly search?: (onFound: () => void) => ComponentChildren;
  /** The name of the signed-in operator or account. */
  readonly identity: ComponentChildren;
  readonly onSignOut: () => void;
  /** Links below the content. */
  readonly footer: ComponentChildren;
  readonly children: ComponentChildren;
};

/** The page of a signed-in viewer: navigation at the side, or at the top of a narrow screen, and the current section. */
export function Frame({ sections, current, search, identity, onSignOut, footer, children }: FrameProps) {
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  /** Of a narrow screen. */
  const [isMenuOpen, setMenuOpen] = useState(false);
  const addressOf = useSectionAddresses(current);
  // Before the section is painted: later, the focus could be taken from a field that is already in use.
  useLayoutEffect(() => {
    const label = sections.find(({ id }) => id === current)?.label ?? "";
    document.title = `${label} · ${PRODUCT.name}`;
    // A new section is announced, and the next Tab starts in it.
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    scrollTo(0, 0);
    isFirst.current = false;
  }, [current, sections]);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header class={isMenuOpen ? "frame-side frame-side-open" : "frame-side"}>
        <Brand />
        <button
          type="button"
          class="button button-plain frame-menu"
          aria-expanded={isMenuOpen}
          onClick={() => setMenuOpen(!isMenuOpen)}
        >
          Menu
        </button>
        {search && <search class="frame-search">{search(() => setMenuOpen(false))}</search>}
        <nav class="frame-nav" aria-label="Sections">
          {sections.map(({ id, label }) => (
            <a
              key={id}
              href={addressOf(id)}
              aria-current={id === current ? "page" : undefined}
              // Also for the section that is shown, which does not change.
              onClick={() => setMenuOpen(false)}
            >
              {label}
            </a>
          ))}
        </nav>
        <div class="frame-identity">
          <div class="frame-who">{identity}</div>
          <Button onClick={onSignOut}>Sign out</Button>
        </div>
      </header>
      <div class="frame-content">
        <main ref={main} id="main" tabIndex={-1}>
          <SectionAddressProvider value={addressOf}>{children}</SectionAddressProvider>
        </main>
        <footer class="frame-footer small">{footer}</footer>
      </div>
    </div>
  );
}

export function Brand() {
  return (
    <div class="brand">
      <img src={PRODUCT.icon} alt="" height="24" />
      <span>{PRODUCT.name}</span>
    </div>
  );
}

type PageHeaderProps = {
  readonly title: string;
  readonly children?: ComponentChildren;
};

/** The heading of a section, with its actions. */
export function PageHeader({ title, children }: PageHeaderProps) {
  return (
    <div class="page-header">
      <h1>{title}</h1>
      {children !== undefined && <div class="page-actions">{children}</div>}
    </div>
  );
}
