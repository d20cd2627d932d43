// Somebody with a browser of their own. Whatever goes wrong on any page is kept, and fails the test.
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before } from 'node:test';
import { chromium as playwright, type Browser, type BrowserContext, type Cookie, type Locator, type Page } from 'playwright-core';

import { chromium, landscape, patience, type User } from './landscape.ts';

let browser: Browser | undefined;
let visitors: Visitor[] = [];

const hostOf = (address: string) => new URL(address).hostname;

/** useBrowser has the tests of a file share a browser. */
export function useBrowser() {
  before(async () => {
    const [address] = landscape.gateway.split(':');
    const rules = [landscape.dashboard, landscape.login].map((url) => `MAP ${hostOf(url)} ${address}`);
    browser = await playwright.launch({
      executablePath: chromium,
      chromiumSandbox: false,
      args: [
        '--disable-gpu',
        '--disable-background-networking',
        // It finds the landscape, and nothing else.
        `--host-resolver-rules=${[...rules, 'MAP * ~NOTFOUND'].join(',')}`,
      ],
    });
  });
  after(async () => {
    await Promise.all(visitors.map((visitor) => visitor.context.close()));
    visitors = [];
    await browser?.close();
  });
}

export interface Options {
  width?: number;
  height?: number;
}

/** Visitor is who uses a page. */
export class Visitor {
  readonly context: BrowserContext;
  readonly page: Page;
  readonly problems: string[] = [];
  private readonly told: string[] = [];
  private readonly underWay = new Set<unknown>();

  private constructor(context: BrowserContext, page: Page) {
    this.context = context;
    this.page = page;
  }

  static async open({ width = 1280, height = 900 }: Options = {}): Promise<Visitor> {
    assert.ok(browser, 'useBrowser was not called');
    const context = await browser.newContext({
      baseURL: landscape.dashboard,
      viewport: { width, height },
      locale: 'en-GB',
      timezoneId: 'Europe/Berlin',
      reducedMotion: 'reduce',
      colorScheme: 'light',
    });
    // Other sites' pages may ask for what is on this machine, as those of a landscape elsewhere may.
    await context.grantPermissions(['local-network-access']);
    context.setDefaultTimeout(patience);
    const visitor = new Visitor(context, await context.newPage());
    await visitor.listen();
    visitors.push(visitor);
    return visitor;
  }

  private async listen() {
    await this.context.exposeBinding('tellViolation', (_, text: string) => void this.problems.push(`policy: ${text}`));
    await this.context.addInitScript(() => {
      const { tellViolation } = window as unknown as { tellViolation: (text: string) => void };
      document.addEventListener('securitypolicyviolation', (event) =>
        tellViolation(`${event.effectiveDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber} ${event.sample}`),
      );
    });
    this.page.on('console', (message) => {
      const text = `${message.type()}: ${message.text()}`;
      this.told.push(text);
      if (text.includes('Content Security Policy')) this.problems.push(text);
    });
    this.page.on('pageerror', (error) => this.problems.push(`error on ${this.page.url()}: ${error.stack ?? error.message}`));
    // No dialog of the page's own is expected but that of who leaves an editor.
    this.page.on('dialog', (dialog) => {
      if (dialog.type() === 'alert' || dialog.type() === 'prompt') this.problems.push(`dialog: ${dialog.message()}`);
      void dialog.accept();
    });
    // What is followed, as a log is, has no end.
    const isQuestion = (url: string) => url.includes('/api/') && !url.includes('follow=true');
    this.page.on('request', (request) => isQuestion(request.url()) && this.underWay.add(request));
    this.page.on('requestfinished', (request) => this.underWay.delete(request));
    this.page.on('requestfailed', (request) => this.underWay.delete(request));
  }

  /** settled waits until the page has its answers, so that what is not there now is not offered. */
  async settled() {
    for (let quiet = 0; quiet < 3; quiet = this.underWay.size === 0 ? quiet + 1 : 0) {
      await this.page.evaluate(
        () => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(() => resolve(undefined)))),
      );
    }
  }

  async visit(path: string) {
    await this.page.goto(path);
    await this.settled();
  }

  /** logIn logs in by the landscape's issuer, as people do, and is on the first page then. */
  async logIn(user: User, password = landscape.passwords[user]) {
    await this.page.goto('/login');
    await this.page.getByRole('link', { name: /^Log in by / }).click();
    await this.page.waitForURL((url) => url.hostname === hostOf(landscape.login));
    await this.page.getByLabel('Name').fill(user);
    await this.page.getByLabel('Password').fill(password);
    await this.page.getByRole('button', { name: 'Log in' }).click();
  }

  /** loggedIn is on the page of projects as a user, with the session of an earlier test if there is one. */
  async loggedIn(user: User) {
    const kept = join(landscape.work, `session-${user}.json`);
    if (existsSync(kept)) {
      await this.context.addCookies(JSON.parse(readFileSync(kept, 'utf8')) as Cookie[]);
      await this.page.goto('/projects');
    } else {
      await this.logIn(user);
    }
    await this.heading('Projects').waitFor();
    await this.settled();
    writeFileSync(kept, JSON.stringify(await this.context.cookies(landscape.dashboard)), { mode: 0o600 });
  }

  heading(name: string): Locator {
    return this.page.getByRole('heading', { level: 1, name, exact: true });
  }

  /** section of a page by its title. */
  section(name: string): Locator {
    return this.page.getByRole('region', { name, exact: true });
  }

  /** confirm presses a button, and the one of the same name in the window that it opens. */
  async confirm(button: Locator, name: string) {
    await button.click();
    const dialog = this.page.getByRole('dialog');
    await dialog.getByRole('button', { name, exact: true }).click();
    await dialog.waitFor({ state: 'hidden' });
  }

  /** mark marks the page, so that isMarked tells whether it was loaded anew. */
  async mark() {
    await this.page.evaluate(() => Object.assign(window, { markOfTheTest: true }));
  }

  isMarked(): Promise<boolean> {
    return this.page.evaluate(() => 'markOfTheTest' in window);
  }

  /** ask has the page itself ask the server, as a script that got into it could. */
  ask(path: string, init: { method?: string; headers?: Record<string, string>; body?: string } = {}) {
    return this.page.evaluate(
      async ({ path, init }) => {
        const answer = await fetch(path, init);
        return { status: answer.status, type: answer.headers.get('Content-Type') ?? '', text: await answer.text() };
      },
      { path, init },
    );
  }

  /** session is what the page knows of who is logged in. */
  async session(): Promise<{ user: string; csrfToken: string }> {
    const { status, text } = await this.ask('/api/session');
    assert.equal(status, 200, text);
    return JSON.parse(text) as { user: string; csrfToken: string };
  }

  /** picture takes one of what is to be seen. Nothing is changed on the page for it. */
  async picture(name: string): Promise<string> {
    mkdirSync(landscape.pictures, { recursive: true });
    const path = join(landscape.pictures, `${name}.webp`);
    const tools = await this.context.newCDPSession(this.page);
    const { data } = await tools.send('Page.captureScreenshot', { format: 'webp', quality: 70 });
    await tools.detach();
    writeFileSync(path, Buffer.from(data, 'base64'));
    return path;
  }

  /** fine fails if anything went wrong on a page so far. */
  fine() {
    assert.deepEqual(this.problems, []);
  }

  /** lastSeen writes down what is on the page, for who has to find out why a test failed. */
  async lastSeen(name: string): Promise<string> {
    const picture = await this.picture(name).catch((error: unknown) => `no picture: ${String(error)}`);
    const text = await this.page.locator('body').ariaSnapshot({ timeout: 10_000 }).catch((error: unknown) => `no text: ${String(error)}`);
    const all = [`at ${this.page.url()}`, text, 'Console:', ...this.told.slice(-30), 'Problems:', ...this.problems].join('\n');
    writeFileSync(join(landscape.pictures, `${name}.txt`), all);
    return `${all}\n(picture: ${picture})`;
  }
}

let failures = 0;

/** withVisitors gives a test its visitors, and tells what was on their pages if it fails. */
export async function withVisitors(count: number, act: (...them: Visitor[]) => Promise<void>) {
  const them: Visitor[] = [];
  for (let i = 0; i < count; i++) them.push(await Visitor.open());
  try {
    await act(...them);
    them.forEach((visitor) => visitor.fine());
  } catch (error) {
    failures++;
    for (const [i, visitor] of them.entries()) {
      console.error(await visitor.lastSeen(`failure-${process.pid}-${failures}-${i + 1}`));
    }
    throw error;
  } finally {
    await Promise.all(them.map(({ context }) => context.close()));
    visitors = visitors.filter((visitor) => !them.includes(visitor));
  }
}
