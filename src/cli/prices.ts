import { priceVersionColumns } from "./columns.ts";
import { type Define, withExamples } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";

export const define: Define = (command) => {
  command.argument("<model>", "the id or an alias of the model");
  command.option("--json", "print the response message as JSON");
  addListOptions(withExamples(command, ["vx prices acme-large", "vx prices acme-large --json"])).action(list);
};

async function list(model: string, options: ListOptions): Promise<void> {
  await callAndPrintList(options, "listPrices", {
    request: { model },
    rows: (page) => page.versions,
    columns: priceVersionColumns,
    none: "The model has no prices.",
  });
}
