import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";

const SHOWN_MS = 2_000;

type CopyButtonProps = {
  readonly text: string;
  /** The name of the copied value, such as "key". */
  readonly what: string;
};

export function CopyButton({ text, what }: CopyButtonProps) {
  const { state, place, copy } = useCopy(text);
  return (
    <span class="copy" ref={place}>
      <Button onClick={copy}>{state === "copied" ? "Copied" : `Copy ${what}`}</Button>
      <CopyState state={state} what={what} />
    </span>
  );
}

type CopyableProps = CopyButtonProps & {
  /** The address of the page of the value, if it has one. */
  readonly href?: string | undefined;
  /** Less prominent than the text beside it. */
  readonly isMuted?: boolean;
};

/** An id or a command with a small button that copies it. */
export function Copyable({ text, what, href, isMuted = false }: CopyableProps) {
  const { state, place, copy } = useCopy(text);
  return (
    <span class="copyable" ref={place}>
      {href === undefined ? (
        <code class={isMuted ? "muted" : undefined}>{text}</code>
      ) : (
        <a href={href}>
          <code>{text}</code>
        </a>
      )}
      <button type="button" class="copy-icon" aria-label={`Copy ${what}`} title={`Copy ${what}`} onClick={copy}>
        <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
          <path
            d={state === "copied" ? "m3 8.5 3.5 3.5L13 4.5" : "M5.5 5.5h7v8h-7zM10.5 5.5v-3h-7v8h2"}
            fill="none"
            stroke="currentColor"
            stroke-width="1.5"
            stroke-linejoin="round"
          />
        </svg>
      </button>
      <CopyState state={state} what={what} />
    </span>
  );
}

type State = "ready" | "copied" | "failed";

type Copying = {
  readonly state: State;
  readonly place: RefObject<HTMLSpanElement | null>;
  readonly copy: () => void;
};

function useCopy(text: string): Copying {
  const [state, setState] = useState<State>("ready");
  const place = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (state !== "copied") return;
    const timer = setTimeout(() => setState("ready"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () =>
    void copyText(text, place.current ?? document.body).then((isCopied) => setState(isCopied ? "copied" : "failed"));
  return { state, place, copy };
}

function CopyState({ state, what }: { readonly state: State; readonly what: string }) {
  return (
    <>
      <span class="hidden" role="status">
        {state === "copied" && `The ${what} is copied.`}
      </span>
      {state === "failed" && <span class="field-error">Select the {what} and copy it.</span>}
    </>
  );
}

/** The clipboard is missing on pages that are neither secure nor local: there, a selection is copied. */
async function copyText(text: string, near: HTMLElement): Promise<boolean> {
  if (navigator.clipboard !== undefined) {
    return await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = document.createElement("textarea");
  area.value = text;
  // In a dialog, only elements of the dialog can be selected.
  near.append(area);
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  return isCopied;
}
