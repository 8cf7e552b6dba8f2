import { navigate } from "../shared/use-route.ts";
import { AccountCombobox } from "./account-filter.tsx";
import { foundHref } from "./links.ts";

/** Opens the page of an account, or of what has an id. */
export function FindField({ onFound }: { readonly onFound: () => void }) {
  return (
    <AccountCombobox
      label="Find"
      placeholder="Account or any id"
      shown=""
      first={[]}
      onSelect={(accountId, search) => {
        navigate(foundHref(search, accountId));
        onFound();
      }}
    />
  );
}
