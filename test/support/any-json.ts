export type JsonAnswer = {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: the tests read JSON of different methods
  readonly body: any;
};
