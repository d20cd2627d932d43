import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

// The content security policy allows scripts and styles of this site only: nothing is put into the page itself, neither
// as a data URL nor as an inline script.
export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2024',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': { target: 'http://localhost:8080', ws: true } } },
  test: {
    environment: 'jsdom',
    include: ['src/**/*.test.{ts,tsx}'],
    setupFiles: ['src/testing.ts'],
    env: { TZ: 'UTC' },
  },
});
