/** A response of node:http says itself that it is cut off, one of node:http2 only through its stream. */
type Cuttable = { readonly destroyed?: boolean; readonly stream?: { readonly destroyed: boolean } };

/** Whether nobody is left to write to. */
export function isGone(response: object): boolean {
  const { destroyed, stream } = response as Cuttable;
  return destroyed === true || stream?.destroyed === true;
}
