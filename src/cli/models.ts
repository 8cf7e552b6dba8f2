import { CatalogModelSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { list } from "./call.ts";
import { PRICES, priceTexts } from "./prices.ts";
import { columnsOf } from "./print.ts";
import { noun } from "./row.ts";

const columns = columnsOf(
  CatalogModelSchema,
  `id, contextWindow as CONTEXT, maxOutputTokens as MAX OUTPUT, ${PRICES}, capabilities, aliases, upstreams` as const,
  { "only in --json": "ownedBy, created", "in prices": "inputMicrosPerMillionTokens, outputMicrosPerMillionTokens" },
  { ...priceTexts, upstreams: (upstreams) => upstreams.map(({ kind }) => kind).join(",") },
);

const ABOUT = "List the models with their prices and upstreams, sorted by id.";

export const row = noun(["list"], {
  list: list("listModels", columns, { about: ABOUT, none: "There are no models.", fields: {}, examples: ["", "--json"] }),
});
