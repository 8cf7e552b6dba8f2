import type { BrowserContext, Page } from "playwright-core";
import type { CustomerApp } from "../support/customer.ts";

type Place = { readonly app: CustomerApp; readonly browser: BrowserContext; readonly page: Page };

/** What people do on the customer page. The place is known when the tests run. */
export function personPage(place: () => Place) {
  const button = (name: string | RegExp) => place().page.getByRole("button", { name });
  const dialog = () => place().page.getByRole("dialog");
  const inDialog = (name: string) => dialog().getByRole("button", { name });
  const heading = (name: string | RegExp) => place().page.getByRole("heading", { level: 1, name }).waitFor();
  const see = async (text: string | RegExp) => {
    await place().page.getByText(text).filter({ visible: true }).first().waitFor();
  };
  const open = async (hash = "") => {
    const { app, page } = place();
    await page.goto("about:blank");
    await page.goto(`${app.url}/account${hash}`);
  };
  /** Opens the page as a person, in a browser without a session. */
  const signIn = async (email: string, hash = "", emailVerified = true) => {
    const { app, browser, page } = place();
    await browser.clearCookies();
    Object.assign(app.provider.behaviour, { subject: `subject of ${email}`, email, emailVerified });
    await open(hash);
    await page.getByRole("link", { name: /^Sign in/ }).click();
  };
  const createAccount = async (name: string) => {
    await heading("Create your account");
    await place().page.getByLabel("Name of the account").fill(name);
    await place().page.keyboard.press("Enter");
  };
  const signUp = async (email: string, name: string) => {
    await signIn(email);
    await createAccount(name);
    await heading("Overview");
  };
  /** The part with the token of the link that the dialog shows. */
  const shownLink = async () => {
    const link = await place().page.locator(".shown-secret").innerText();
    await inDialog("Done").click();
    return new URL(link).hash;
  };
  const invite = async (role: string, email = "") => {
    await open("#/members");
    await button("Invite").click();
    await dialog().getByLabel("Role").selectOption(role);
    await dialog().getByLabel("E-mail address").fill(email);
    await inDialog("Create link").click();
    return await shownLink();
  };
  return { button, dialog, inDialog, heading, see, open, signIn, createAccount, signUp, shownLink, invite };
}
