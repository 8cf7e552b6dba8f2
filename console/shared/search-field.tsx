import { useEffect, useId, useState } from "preact/hooks";

/** The search starts when the viewer stops typing. */
const DELAY_MS = 250;

type SearchFieldProps = {
  readonly label: string;
  readonly placeholder: string;
  readonly maxLength: number;
  readonly initial?: string;
  readonly onSearch: (text: string) => void;
};

export function SearchField({ label, placeholder, maxLength, initial = "", onSearch }: SearchFieldProps) {
  const [text, setText] = useState(initial);
  const id = useId();
  useEffect(() => {
    const timer = setTimeout(() => onSearch(text.trim()), DELAY_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <search class="search">
      <label class="hidden" for={id}>
        {label}
      </label>
      <input
        id={id}
        type="search"
        placeholder={placeholder}
        maxLength={maxLength}
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
    </search>
  );
}
