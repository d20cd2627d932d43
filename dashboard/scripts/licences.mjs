// Lists the licences of what the pages are made of, and fails if one of them asks for more than to be named.
import { readFileSync } from 'node:fs';

const permissive = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Zlib', 'CC0-1.0']);
const { packages } = JSON.parse(readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8'));

const isPermissive = (licence) =>
  (licence ?? '')
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => permissive.has(choice));

const used = Object.entries(packages)
  .filter(([path, entry]) => path !== '' && !entry.dev && !entry.devOptional)
  .map(([path, entry]) => ({ name: path.replace(/^.*node_modules\//, ''), ...entry }))
  .sort((a, b) => a.name.localeCompare(b.name));

for (const { name, version, license } of used) console.log(`${license ?? 'none'}\t${name}@${version}`);

const refused = used.filter(({ license }) => !isPermissive(license));
if (refused.length > 0) {
  console.error(`Not allowed, or no licence: ${refused.map(({ name }) => name).join(', ')}. Take another package.`);
  process.exit(1);
}
