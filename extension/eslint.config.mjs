/** The rules for the extension's TypeScript and for the dashboard's scripts. */

import js from '@eslint/js';
import globals from 'globals';
import typescript from 'typescript-eslint';

const unused = ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'none' }];

export default [
  { ignores: ['lib/**', 'node_modules/**', '**/labextension/**'] },
  { ...js.configs.recommended, files: ['**/static/**/*.js'] },
  {
    files: ['**/static/**/*.js'],
    languageOptions: { globals: globals.browser },
    rules: { eqeqeq: ['error', 'always', { null: 'ignore' }], 'no-var': 'error', 'prefer-const': 'error', 'no-unused-vars': unused }
  },
  ...typescript.configs.recommended.map(config => ({ ...config, files: ['src/**/*.{ts,tsx}'] })),
  { files: ['src/**/*.{ts,tsx}'], rules: { '@typescript-eslint/no-unused-vars': unused, '@typescript-eslint/no-namespace': 'off' } }
];
