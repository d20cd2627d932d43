// Adds up what a browser loads before the first page shows, compressed as the server does, and fails above the limit.
import { readdirSync, readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';

const limit = 300_000;
const dist = new URL('../dist/', import.meta.url);
const manifest = JSON.parse(readFileSync(new URL('.vite/manifest.json', dist), 'utf8'));
const compressed = (file) => gzipSync(readFileSync(new URL(file, dist))).length;

// follow collects a chunk with its styles, and what it imports at once.
function follow(name, files) {
  const chunk = manifest[name];
  if (files.has(chunk.file)) return files;
  files.add(chunk.file);
  chunk.css?.forEach((file) => files.add(file));
  chunk.imports?.forEach((imported) => follow(imported, files));
  return files;
}

// What each visitor of the overview loads: the entry, the frame of all pages, the language and the first page.
const first = ['index.html', 'src/app/Shell.tsx', 'src/i18n/en.ts', 'src/projects/ProjectsPage.tsx'];
const files = new Set(['index.html']);
first.forEach((name) => follow(name, files));
// The worker of the connection is in no manifest.
const workers = readdirSync(new URL('assets', dist)).filter((file) => /^worker-.*\.js$/.test(file));
if (workers.length !== 1) throw new Error(`one worker is to be built, not ${workers.length}`);
workers.forEach((file) => files.add(`assets/${file}`));
const total = [...files].reduce((sum, file) => sum + compressed(file), 0);

for (const chunk of Object.values(manifest).filter(({ isDynamicEntry }) => isDynamicEntry)) {
  console.log(`${String(Math.ceil(compressed(chunk.file) / 1000)).padStart(4)} kB later  ${chunk.file}`);
}
console.log(`${String(Math.ceil(total / 1000)).padStart(4)} kB first  ${files.size} files, at most ${limit / 1000} kB`);
if (total > limit) {
  console.error('The first load is too large: load what not every visitor needs by import().');
  process.exit(1);
}
