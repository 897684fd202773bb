#!/bin/bash
# Unpacks the Neovim of a Debian suite into a folder of its own, for the tests to drive beside the one from PyPI.
#
#     tests/editors/install-neovim.sh sid .tools/neovim
#
# The host stays as it is: apt gets its own state under PREFIX, the packages are unpacked and not installed, and
# PREFIX/bin/nvim starts the editor with the suite's own C library. (So `v:progpath` is that library's loader.)
# Needs Debian's apt and dpkg on x86_64 or arm64, and network.
set -euo pipefail

if [ $# -ne 2 ]; then
  echo "usage: $0 SUITE PREFIX" >&2
  exit 2
fi
suite=$1
mkdir -p "$2"
prefix=$(cd "$2" && pwd)
apt=$prefix/apt
root=$prefix/root

# The mirror is the one that the host uses for Debian itself.
mirror=$(
  {
    sed -n 's/^URIs:[[:space:]]*\([^[:space:]]*\).*/\1/p' /etc/apt/sources.list.d/*.sources 2>/dev/null || true
    sed -n 's/^deb[[:space:]]\+\(\[[^]]*\][[:space:]]*\)\?\([^[:space:]]*\).*/\2/p' /etc/apt/sources.list 2>/dev/null || true
  } | grep '/debian/\?$' | head -n 1
)
if [ -z "$mirror" ]; then
  echo "no Debian mirror in the host's apt configuration" >&2
  exit 1
fi

mkdir -p "$apt"/etc/apt/preferences.d "$apt"/var/lib/apt/lists/partial "$apt"/var/cache/apt/archives/partial \
  "$apt"/var/lib/dpkg "$root" "$prefix"/bin
: >"$apt"/var/lib/dpkg/status
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$apt"/etc/apt/sources.list

private_apt() {
  apt-get -qq \
    -o Dir="$apt" \
    -o Dir::State::status="$apt"/var/lib/dpkg/status \
    -o Dir::Etc::trustedparts=/etc/apt/trusted.gpg.d \
    -o APT::Sandbox::User="$(id -un)" \
    -o APT::Install-Recommends=false \
    "$@"
}
private_apt update
private_apt -y --download-only install neovim >/dev/null
for package in "$apt"/var/cache/apt/archives/*.deb; do
  dpkg-deb -x "$package" "$root"
done

loader=$(find "$root" -name 'ld-linux-*.so.*' | head -n 1)
libraries=$(find "$root" -type d -path '*/lib/*-linux-gnu' | paste -s -d :)
cat >"$prefix"/bin/nvim <<EOF
#!/bin/sh
export VIMRUNTIME='$root/usr/share/nvim/runtime'
exec '$loader' --library-path '$libraries' --argv0 nvim '$root/usr/bin/nvim' "\$@"
EOF
chmod +x "$prefix"/bin/nvim
rm -r "$apt"
"$prefix"/bin/nvim --version | head -n 1
