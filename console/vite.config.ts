import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

// The bundle is committed, so its names depend on its content only, and nothing is inlined: the content security
// policy allows no inline script and no inline style.
export default defineConfig({
  plugins: [svelte()],
  build: {
    outDir: '../src/barnabas/console/static',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: 'es2022',
    chunkSizeWarningLimit: 800,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8080' } },
});
