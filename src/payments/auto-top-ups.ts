import type { Action } from "../database/action.ts";
import type { Cells } from "../database/driver/cells.ts";
import { CallRate } from "../domain/call-rate.ts";
import { DomainError } from "../domain/errors.ts";
import { paymentCurrency } from "../domain/top-up.ts";
import { logOpenedPage } from "../members/store.ts";
import {
  type AutoTopUpRow,
  type AutoTopUpSettings,
  applyAutoTopUpPage,
  autoTopUpsDue,
  forgetCustomer,
  getAutoTopUp,
  putAutoTopUp,
  resumeAutoTopUp,
  setAutoTopUpPage,
} from "./auto-top-up-store.ts";
import { runAll } from "./failures.ts";
import { type PaymentProvider, ProviderError } from "./provider.ts";

type Options = {
  readonly database: Cells;
  readonly provider: PaymentProvider;
  /** Throws if an amount cannot be paid. */
  readonly checkAmount: (micros: bigint) => void;
  /** Where customers return to if they name no address. */
  readonly returnUrl: string;
  readonly now: () => number;
};

export type AutoTopUpChange = AutoTopUpSettings & {
  readonly accountId: string;
  /** Empty for the default. */
  readonly returnUrl: string;
  /** Whether the stored payment method is to be replaced. */
  readonly replacesMethod: boolean;
  readonly action: Action;
};

/** Pages of the provider are valid for a day. */
const MAX_PAGE_AGE_MS = 23 * 3_600_000;
const DUE_PER_ROUND = 20;
/** Of each account and server. The requests of all customers share the rate limit of the provider. */
const BILLING_PAGES_PER_MINUTE = 10;

/** The settings of automatic top-ups, and the payment methods that customers store for them. */
export class AutoTopUps {
  readonly #options: Options;
  readonly #billingPages: CallRate;

  constructor(options: Options) {
    this.#options = options;
    this.#billingPages = new CallRate(BILLING_PAGES_PER_MINUTE, options.now);
  }

  /** Undefined before the settings were changed or a customer was stored for the first time. */
  async get(accountId: string): Promise<AutoTopUpRow | undefined> {
    return await getAutoTopUp(this.#options.database, accountId);
  }

  /** Changes the settings, and creates a page for the payment method if one is needed. A repetition after a failure continues. */
  async put(change: AutoTopUpChange): Promise<AutoTopUpRow | undefined> {
    if (change.isEnabled) this.#check(change);
    const { accountId, action } = change;
    const row = await putAutoTopUp(this.#options.database, action, accountId, change);
    if (!row?.is_enabled || (row.method_id !== null && !change.replacesMethod)) return row;
    const pageAge = this.#options.now() - (row.page_created_at?.getTime() ?? 0);
    if (row.page_id !== null && pageAge < MAX_PAGE_AGE_MS) return row;
    return await this.#createPage(row, change.returnUrl).catch((error: unknown) => {
      if (!(error instanceof ProviderError)) throw error;
      throw new DomainError("unavailable", {
        message: "The settings are stored, but the payment provider did not create a page. Retry later.",
        cause: error,
      });
    });
  }

  #check({ thresholdMicros, amountMicros, monthlyMaxMicros }: AutoTopUpSettings): void {
    this.#options.checkAmount(amountMicros);
    if (thresholdMicros === 0n) throw DomainError.ofField("threshold_micros", "must be greater than 0");
    if (monthlyMaxMicros < amountMicros) throw DomainError.ofField("monthly_max_micros", "must not be below amount_micros");
  }

  async #createPage(row: AutoTopUpRow, returnUrl: string): Promise<AutoTopUpRow> {
    const { provider } = this.#options;
    const { account_id: accountId } = row;
    const order = { accountId, currency: paymentCurrency(), returnUrl: returnUrl || this.#options.returnUrl };
    return await this.withCustomer(accountId, async (customerId) => {
      const page = await provider.createMethodPage({ ...order, customerId });
      return await this.#store(accountId, { id: customerId }, page);
    });
  }

  async #store(
    accountId: string,
    customer: Parameters<typeof setAutoTopUpPage>[2],
    page?: Parameters<typeof setAutoTopUpPage>[3],
  ): Promise<AutoTopUpRow> {
    const row = await setAutoTopUpPage(this.#options.database, accountId, customer, page);
    if (row) return row;
    // The account was closed after the customer was looked up: nobody else deletes what was created since.
    await this.forget(accountId);
    throw DomainError.ofField("account_id", "is closed, which is final");
  }

  /**
   * Calls `use` with the customer of an account at the provider. The first use creates the customer. A customer that was deleted at the
   * provider is replaced: vx deletes one only when its account closes.
   */
  async withCustomer<Result>(accountId: string, use: (customerId: string) => Promise<Result>): Promise<Result> {
    const { database, provider } = this.#options;
    const replaced = (await getAutoTopUp(database, accountId))?.customer_id ?? undefined;
    if (replaced !== undefined) {
      try {
        return await use(replaced);
      } catch (error) {
        if (!(error instanceof ProviderError && error.hasNoCustomer)) throw error;
      }
    }
    const id = await provider.createCustomer(accountId, replaced);
    const row = await this.#store(accountId, { id, replaced });
    return await use(row.customer_id ?? id);
  }

  /** A new page on which the customer manages stored payment methods, the billing address and tax ids. */
  async createBillingPage(action: Action, accountId: string): Promise<string> {
    const { database, provider, returnUrl } = this.#options;
    this.#billingPages.add(accountId);
    await logOpenedPage(database, action, accountId);
    try {
      return await this.withCustomer(accountId, (customerId) => provider.createBillingPage(customerId, returnUrl));
    } catch (error) {
      if (!(error instanceof ProviderError)) throw error;
      throw new DomainError("unavailable", {
        message: "The payment provider did not create the page. Retry later, or ask the operator of this service.",
        cause: error,
      });
    }
  }

  /** Deletes the customer of an account at the provider, and returns its id. */
  async deleteCustomer(accountId: string): Promise<string | undefined> {
    const { database, provider } = this.#options;
    const id = (await getAutoTopUp(database, accountId))?.customer_id ?? undefined;
    if (id !== undefined) await provider.deleteCustomer(id);
    return id;
  }

  async forget(accountId: string): Promise<void> {
    const id = await this.deleteCustomer(accountId);
    if (id !== undefined) await forgetCustomer(this.#options.database, accountId, id);
  }

  /** Looks up a page for a payment method, and stores the method. */
  async refreshPage(id: string): Promise<void> {
    const { database, provider } = this.#options;
    const page = await provider.lookUpMethodPage(id);
    if (page) await applyAutoTopUpPage(database, page.accountId, { id, ...page });
  }

  /** Looks up the page of an account, and forgets one that the provider does not have any more. */
  async #refresh(accountId: string): Promise<void> {
    const { database, provider, now } = this.#options;
    const { page_id: id, customer_id: customerId } = (await getAutoTopUp(database, accountId)) ?? {};
    if (!id) return await resumeAutoTopUp(database, accountId);
    const gone = {
      customerId: customerId ?? "",
      createdAt: new Date(now()),
      isOver: true,
      method: undefined,
    };
    await applyAutoTopUpPage(database, accountId, { id, ...((await provider.lookUpMethodPage(id)) ?? gone) });
  }

  /** Looks up the pages of a cell whose events may be missing, and starts what a new month allows. */
  async poll(cell: Cells["all"][number]): Promise<void> {
    const accountIds = await autoTopUpsDue(cell, DUE_PER_ROUND);
    await runAll(accountIds.map((accountId) => this.#refresh(accountId)));
  }
}
