/** A node:http response has `destroyed` itself; a node:http2 response has it only on its stream. */
type Cuttable = { readonly destroyed?: boolean; readonly stream?: { readonly destroyed: boolean } };

/** Whether the response is closed and cannot be written any more. */
export function isGone(response: object): boolean {
  const { destroyed, stream } = response as Cuttable;
  return destroyed === true || stream?.destroyed === true;
}
