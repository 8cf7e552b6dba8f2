type Page<Row> = { readonly rows: readonly Row[]; readonly nextPageToken: string };

/** The rows of each page of a list, read to its end. */
export async function allPages<Row>(read: (pageToken: string) => Promise<Page<Row>>): Promise<(readonly Row[])[]> {
  const pages: (readonly Row[])[] = [];
  let pageToken = "";
  do {
    const page = await read(pageToken);
    pages.push(page.rows);
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return pages;
}
