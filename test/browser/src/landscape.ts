// The landscape that the tests run against, as test/e2e tells it.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export type User = 'operator' | 'project-admin' | 'viewer';

interface Landscape {
  /** Addresses of the dashboard and of the issuer, and where the gateway is that leads to both. */
  dashboard: string;
  login: string;
  gateway: string;
  passwords: Record<User, string>;
  /** Folder that the browser sees, and folder for pictures and what was on pages that failed. */
  work: string;
  pictures: string;
  kubectl: string;
  /** Kubeconfigs of administrators by cluster: garden, runtime, fleet, member1, member2. */
  kubeconfigs: Record<string, string>;
  /** Whether people also do what takes minutes. */
  longJourneys: boolean;
}

const file = process.env['TRELLIS_BROWSER_LANDSCAPE'];
if (!file) throw new Error('TRELLIS_BROWSER_LANDSCAPE is not set: these tests are started by go test (test/e2e/browser_test.go)');

export const landscape = JSON.parse(readFileSync(file, 'utf8')) as Landscape;

export const chromium = fileURLToPath(new URL('../chromium.sh', import.meta.url));

function run(program: string, input: string, args: string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(program, args, { maxBuffer: 64 << 20 }, (error, out, problems) => {
      if (error) reject(new Error(`${program} ${args.join(' ')}: ${error.message} ${problems}`));
      else resolve(out);
    });
    child.stdin?.end(input);
  });
}

/** kubectl asks a cluster as its administrator. */
export function kubectl(cluster: string, ...args: string[]): Promise<string> {
  return kubectlBy(kubeconfigOf(cluster), ...args);
}

/** kubectlBy asks a cluster as a kubeconfig says. */
export function kubectlBy(kubeconfig: string, ...args: string[]): Promise<string> {
  return run(landscape.kubectl, '', ['--kubeconfig', kubeconfig, ...args]);
}

export function apply(cluster: string, manifest: string): Promise<string> {
  return run(landscape.kubectl, manifest, ['--kubeconfig', kubeconfigOf(cluster), 'apply', '-f', '-']);
}

function kubeconfigOf(cluster: string): string {
  const path = landscape.kubeconfigs[cluster];
  if (!path) throw new Error(`there is no kubeconfig of ${cluster}`);
  return path;
}

/** patience ends what hangs. Nothing is tested by time. */
export const patience = 8 * 60_000;

const pause = 1_000;

/** until asks again and again, and gives the first answer that is accepted. */
export async function until<T>(what: string, ask: () => Promise<T>, accept: (answer: T) => boolean): Promise<T> {
  const end = Date.now() + patience;
  for (;;) {
    let last: string;
    try {
      const answer = await ask();
      if (accept(answer)) return answer;
      last = JSON.stringify(answer);
    } catch (error) {
      last = String(error);
    }
    if (Date.now() > end) throw new Error(`${what}: not within ${patience / 60_000} minutes; last: ${last}`);
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
