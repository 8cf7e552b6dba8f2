import { useLayoutEffect, useRef } from "preact/hooks";

type TabsProps = {
  readonly label: string;
  readonly tabs: readonly { readonly id: string; readonly label: string; readonly href: string }[];
  readonly current: string;
};

/** Links between the parts of a page. In a narrow window they scroll. */
export function Tabs({ label, tabs, current }: TabsProps) {
  const nav = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    nav.current?.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [current]);
  return (
    <nav ref={nav} class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.id} href={tab.href} aria-current={tab.id === current ? "page" : undefined}>
          {tab.label}
        </a>
      ))}
    </nav>
  );
}
