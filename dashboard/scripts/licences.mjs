// Lists the licences of what the pages are made of, and fails if one of them asks for more than to be named. With a
// file, it writes them there with their texts, as the page About shows them.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';

const permissive = new Set(['MIT', 'ISC', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'Zlib', 'CC0-1.0']);
const root = new URL('../', import.meta.url);
const { packages } = JSON.parse(readFileSync(new URL('package-lock.json', root), 'utf8'));

const isPermissive = (licence) =>
  (licence ?? '')
    .replace(/[()]/g, '')
    .split(' OR ')
    .some((choice) => permissive.has(choice));

const used = Object.entries(packages)
  .filter(([path, entry]) => path !== '' && !entry.dev && !entry.devOptional)
  .map(([path, entry]) => ({ path, name: path.replace(/^.*node_modules\//, ''), ...entry }))
  .sort((a, b) => a.name.localeCompare(b.name));

const refused = used.filter(({ license }) => !isPermissive(license));
if (refused.length > 0) {
  console.error(`Not allowed, or no licence: ${refused.map(({ name }) => name).join(', ')}. Take another package.`);
  process.exit(1);
}

// textOf is the licence as the package has it. Packages that need not be installed here may lack it, and some have none.
function textOf(path) {
  const folder = new URL(`${path}/`, root);
  if (!existsSync(folder)) return '';
  const file = readdirSync(folder).find((name) => /^(licen[cs]e|copying)/i.test(name));
  return file ? readFileSync(new URL(file, folder), 'utf8').trim() : '';
}

const [, , file] = process.argv;
if (file) {
  const all = used.map(({ path, name, version, license }) => ({ name, version, licence: license, text: textOf(path) }));
  writeFileSync(file, JSON.stringify(all));
} else {
  for (const { name, version, license } of used) console.log(`${license}\t${name}@${version}`);
}
