#!/usr/bin/env bash
# Checks and packages the extension, then tests the package in a real VS Code with the real server and a scripted model.
# Installs what it needs for that and keeps it. HEL_VSCODE is the folder for the editor, HEL_SCREENSHOTS that for the
# pictures; HEL_README_PICTURE=1 makes README's picture anew.
set -euo pipefail

extension=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
repository=$(cd "$extension/../.." && pwd)
export HEL_VSCODE=${HEL_VSCODE:-$repository/.tools/vscode}

node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' || {
  echo "this needs Node.js 20 or newer, with npm" >&2
  exit 1
}
bash "$extension/test/install-editor.sh" "$HEL_VSCODE"
HEL_CHROMIUM=${HEL_CHROMIUM:-$(command -v chromium)}
export HEL_CHROMIUM

cd "$extension"
if [ ! node_modules/.installed -nt package.json ]; then
  npm install --ignore-scripts --no-package-lock --no-audit --no-fund
  touch node_modules/.installed
fi

rm -rf out
npm run --silent check
npm run --silent package
npm run --silent bundle

if [ -t 1 ]; then reporter=spec; else reporter=tap; fi
# One after the other: each has an editor and a browser of its own.
node --test --test-concurrency=1 --test-reporter="$reporter" out/test/unit/*.test.mjs out/test/e2e/*.test.mjs
