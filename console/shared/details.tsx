import type { ComponentChildren } from "preact";

type DetailsProps = {
  readonly isInDialog?: boolean;
  readonly children: ComponentChildren;
};

/** A list of names with their values. */
export function Details({ isInDialog = false, children }: DetailsProps) {
  return <dl class={isInDialog ? "details details-dialog" : "details"}>{children}</dl>;
}

type DetailProps = {
  readonly name: string;
  readonly isCode?: boolean;
  readonly children: ComponentChildren;
};

/** A name and a value; nothing without a value. */
export function Detail({ name, isCode = false, children }: DetailProps) {
  if (children === "" || children === undefined) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{isCode ? <code>{children}</code> : children}</dd>
    </div>
  );
}
