import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";

const SHOWN_MS = 2_000;

type CopyButtonProps = {
  readonly text: string;
  /** The name of the copied value, such as "key". */
  readonly what: string;
};

export function CopyButton({ text, what }: CopyButtonProps) {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  const button = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (state !== "copied") return;
    const timer = setTimeout(() => setState("ready"), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () =>
    setState((await copyText(text, button.current ?? document.body)) ? "copied" : "failed");
  return (
    <span class="copy" ref={button}>
      <Button onClick={() => void copy()}>{state === "copied" ? "Copied" : `Copy ${what}`}</Button>
      <span class="hidden" role="status">
        {state === "copied" && `The ${what} is copied.`}
      </span>
      {state === "failed" && <span class="field-error">Select the {what} and copy it.</span>}
    </span>
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
