import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Field } from "./field.tsx";
import { Brand } from "./frame.tsx";
import type { Problem } from "./problem.ts";
import { PRODUCT } from "./product.ts";
import { Notice, ProblemText } from "./states.tsx";

type SignInProps = {
  readonly title: string;
  readonly lead: string;
  /** What the caller enters, as in the middle of a sentence: "API key". */
  readonly secretName: string;
  readonly hint: string;
  /** How the secret begins. */
  readonly prefix: string;
  /** Why the viewer is no longer signed in. */
  readonly notice: string | undefined;
  /** Tries the secret; returns why it cannot be used. */
  readonly onSubmit: (secret: string) => Promise<Problem | undefined>;
  readonly footer: ComponentChildren;
  /** A way to sign in that is more usual than the secret. */
  readonly first?: ComponentChildren;
  /** Another way to sign in. */
  readonly children?: ComponentChildren;
};

/** Asks for a secret. It is a text control without a name: browsers neither store it nor offer to do so. */
export function SignIn({ title, lead, secretName, hint, prefix, notice, onSubmit, footer, first, children }: SignInProps) {
  const [secret, setSecret] = useState("");
  const [error, setError] = useState<string>();
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = `${title} · ${PRODUCT.name}`;
    if (first === undefined) input.current?.focus();
  }, [title]);

  const submit = async (event: Event) => {
    event.preventDefault();
    const text = secret.trim();
    const invalid = problemOfSecret(text, secretName, prefix);
    setError(invalid);
    setProblem(undefined);
    if (invalid !== undefined) {
      input.current?.focus();
      return;
    }
    setBusy(true);
    setProblem(await onSubmit(text));
    setBusy(false);
  };

  return (
    <div class="sign-in">
      <header>
        <Brand />
      </header>
      <main class="sign-in-card">
        <h1>{title}</h1>
        <p class="muted">{lead}</p>
        {notice !== undefined && problem === undefined && <Notice tone="warn">{notice}</Notice>}
        {problem && (
          <Notice tone="bad">
            <strong>{problem.title}</strong>
            <ProblemText problem={problem} />
          </Notice>
        )}
        {first}
        <form onSubmit={(event) => void submit(event)} noValidate>
          <Field label={capitalized(secretName)} hint={hint} error={error}>
            {(control) => (
              <input
                {...control}
                ref={input}
                class="secret mono"
                type="text"
                autocomplete="off"
                autocapitalize="off"
                spellcheck={false}
                value={secret}
                onInput={(event) => setSecret(event.currentTarget.value)}
              />
            )}
          </Field>
          <Button type="submit" tone={first === undefined ? "primary" : "plain"} isBusy={isBusy}>
            {first === undefined ? "Sign in" : `Sign in with ${secretName}`}
          </Button>
        </form>
        {children}
      </main>
      <footer class="frame-footer small">{footer}</footer>
    </div>
  );
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function problemOfSecret(text: string, name: string, prefix: string): string | undefined {
  if (text === "") return `Enter the ${name}.`;
  // A header cannot contain other characters.
  if (!/^[!-~]+$/.test(text) || !text.startsWith(prefix)) return `The ${name} begins with ${prefix}.`;
  return undefined;
}
