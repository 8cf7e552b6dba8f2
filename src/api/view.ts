import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { formatMicros } from "../domain/money.ts";

type CamelCase<Name> = Name extends `${infer Word}_${infer Rest}` ? `${Word}${Capitalize<CamelCase<Rest>>}` : Name;
type FieldsOf<Row> = {
  [Column in keyof Row as CamelCase<Column>]: NonNullable<Row[Column]> extends Date ? Timestamp : NonNullable<Row[Column]>;
};
/** The fields whose columns have other types. */
type Differing<Message, Fields> = {
  [Name in keyof Fields & keyof Message]: Fields[Name] extends NonNullable<Message[Name]> ? never : Name;
}[keyof Fields & keyof Message];

/**
 * A message with the fields that the row has as columns of the same names, and others. A column that is null is an absent field, and
 * the amount "x" is the text of the column "x_micros".
 */
export function viewOf<Desc extends DescMessage, Row extends object>(
  desc: Desc,
  row: Row,
  others: MessageInitShape<Desc> & Record<Differing<MessageShape<Desc>, FieldsOf<Row>>, unknown>,
): MessageInitShape<Desc> {
  const columns = row as Readonly<Record<string, unknown>>;
  const view: Record<string, unknown> = {};
  for (const { name, localName } of desc.fields) {
    const value = columns[name];
    if (value instanceof Date) view[localName] = timestampFromDate(value);
    else if (value !== undefined && value !== null) view[localName] = value;
    else {
      const micros = columns[`${name}_micros`];
      if (typeof micros === "bigint") view[localName] = formatMicros(micros);
    }
  }
  return Object.assign(view, others) as MessageInitShape<Desc>;
}
