/** One page of a list. */
export type Page<Item> = { readonly items: readonly Item[]; readonly nextPageToken: string };

/** A list that is read page by page while it is iterated. */
export class Pages<Item> implements AsyncIterable<Item> {
  readonly #read: (pageToken: string) => Promise<Page<Item>>;

  constructor(read: (pageToken: string) => Promise<Page<Item>>) {
    this.#read = read;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }

  /** The pages. `nextPageToken` is the `pageToken` of a list that continues after the page; empty after the last one. */
  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    let pageToken = "";
    do {
      const page = await this.#read(pageToken);
      yield page;
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
  }
}
