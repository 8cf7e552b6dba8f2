import type { ComponentChildren } from "preact";
import { Copyable } from "./copy-button.tsx";

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
  readonly children: ComponentChildren;
};

/** A name and a value; nothing without a value. */
export function Detail({ name, children }: DetailProps) {
  if (children === "" || children === undefined) return null;
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

type IdDetailProps = {
  readonly name: string;
  readonly id: string;
  /** The address of the page of the object, if it has one. */
  readonly href?: string | undefined;
};

/** An id that can be copied; nothing without an id. */
export function IdDetail({ name, id, href }: IdDetailProps) {
  if (id === "") return null;
  return (
    <Detail name={name}>
      <Copyable text={id} what={name.charAt(0).toLowerCase() + name.slice(1)} href={href} />
    </Detail>
  );
}
