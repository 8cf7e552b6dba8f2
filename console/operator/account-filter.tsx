import { useEffect, useId, useState } from "preact/hooks";
import type { Account } from "../../gen/vx/admin/v1/admin_pb.js";
import { Field } from "../shared/field.tsx";
import { useQuery } from "../shared/use-query.ts";
import { changeParams } from "../shared/use-route.ts";
import { useApi } from "./operator-session.ts";

/** The list follows when the operator stops typing. */
const DELAY_MS = 150;
const MAX_SHOWN = 8;

type AccountFilterProps = {
  /** The section of the URL that is filtered; its parameter "account" is the id. */
  readonly section: string;
  /** The id of the account; empty for all accounts. */
  readonly value: string;
};

type Choice = { readonly id: string; readonly name: string; readonly note: string };

const ALL: Choice = { id: "", name: "All accounts", note: "" };

/** Filters a section by an account. */
export function AccountFilter({ section, value }: AccountFilterProps) {
  const api = useApi();
  const { data: account } = useQuery(
    async (signal) => (value === "" ? undefined : (await api.getAccount({ accountId: value }, { signal })).account),
    [value],
  );
  return (
    <AccountCombobox
      label="Account"
      placeholder={ALL.name}
      shown={value === "" ? "" : (account?.name ?? value)}
      first={[ALL]}
      // The models and keys of another account are others.
      onSelect={(id) => changeParams(section, { account: id, key: "", keys: "", models: "", target: "", entry: "" })}
    />
  );
}

type AccountComboboxProps = {
  readonly label: string;
  readonly placeholder: string;
  /** What the field contains until the operator types. */
  readonly shown: string;
  /** Choices before the accounts, until the operator types. */
  readonly first: readonly Choice[];
  readonly onSelect: (id: string, search: string) => void;
};

/**
 * Selects an account by a part of its name, its external id, its e-mail address, its id, or the id of something that belongs to it.
 */
export function AccountCombobox({ label, placeholder, shown, first, onSelect }: AccountComboboxProps) {
  const api = useApi();
  /** Undefined until the operator types. */
  const [typed, setTyped] = useState<string>();
  const [isOpen, setOpen] = useState(false);
  const [active, setActive] = useState(0);
  const listId = useId();
  const search = useDelayed((typed ?? "").trim());
  const find = async (text: string, signal?: AbortSignal) =>
    (await api.listAccounts({ search: text, pageSize: MAX_SHOWN }, signal ? { signal } : {})).accounts;
  const { data: found } = useQuery(
    async (signal) => (isOpen ? { search, accounts: await find(search, signal) } : undefined),
    [isOpen, search],
  );
  const choices = [...(search === "" ? first : []), ...(found?.accounts ?? []).map(choiceOf)];
  const close = () => {
    setOpen(false);
    setTyped(undefined);
  };
  const select = ({ id }: Choice) => {
    onSelect(id, (typed ?? "").trim());
    close();
  };
  const enter = async () => {
    const text = (typed ?? "").trim();
    const choice = found?.search === text ? choices[active] : (await find(text)).map(choiceOf)[0];
    if (choice) select(choice);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      event.preventDefault();
      setOpen(true);
      setActive(isOpen ? (active + step + choices.length) % Math.max(choices.length, 1) : 0);
    } else if (event.key === "Enter" && isOpen) {
      event.preventDefault();
      void enter();
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      close();
    }
  };
  return (
    <div class="combobox">
      <Field label={label}>
        {(control) => (
          <input
            {...control}
            role="combobox"
            aria-expanded={isOpen}
            aria-controls={listId}
            aria-autocomplete="list"
            aria-activedescendant={isOpen && choices[active] ? `${listId}-${active}` : undefined}
            autocomplete="off"
            spellcheck={false}
            maxLength={254}
            placeholder={placeholder}
            value={typed ?? shown}
            onClick={() => setOpen(true)}
            onFocus={(event) => event.currentTarget.select()}
            onBlur={close}
            onKeyDown={onKeyDown}
            onInput={(event) => {
              setTyped(event.currentTarget.value);
              setActive(0);
              setOpen(true);
            }}
          />
        )}
      </Field>
      <div class="combobox-list" hidden={!isOpen}>
        <div id={listId} role="listbox" aria-label="Accounts">
          {choices.map((choice, index) => (
            <button
              type="button"
              key={choice.id}
              id={`${listId}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={index === active}
              // The field keeps the focus.
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => select(choice)}
            >
              {choice.name}
              {choice.note !== "" && <span class="muted small">{choice.note}</span>}
            </button>
          ))}
        </div>
        {choices.length === 0 && <p class="muted small">{found?.search === search ? "No account matches" : "Searching …"}</p>}
      </div>
    </div>
  );
}

function choiceOf({ id, name, externalId, email }: Account): Choice {
  return { id, name, note: [externalId, email].filter((text) => text !== "").join(" · ") || id };
}

function useDelayed(text: string): string {
  const [delayed, setDelayed] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setDelayed(text), DELAY_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return delayed;
}
