#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install - installs npm packages with exact versions and checks that the agent's program starts.
# `sbx template build AGENT` runs it as root in a scratch sandbox, which can reach only the registry
# and contains no credential.
#
# usage: sh -s -- look PACKAGE...
#               prints `newest PACKAGE VERSION`
#        sh -s -- install NODE COMMAND PACKAGE@VERSION...
#               prints `package NAME VERSION INTEGRITY`. NODE is a version or -.
#
# SBX_PINS has lines `PACKAGE INTEGRITY`: a package of this name with other content is not unpacked.
# npm_config_registry is the URL of the registry. Lines that begin with # are progress.
set -eu

ca=/var/tmp/sbx-npm-ca.pem
plan=/var/tmp/sbx-npm-plan
modules=/usr/local/lib/node_modules
export npm_config_cache=/var/tmp/sbx-npm-cache npm_config_audit=false npm_config_fund=false
export npm_config_update_notifier=false npm_config_fetch_retries=2 npm_config_loglevel=error
export npm_config_progress=false npm_config_engine_strict=false HOME=/root
if [ -s "$ca" ]; then
	export npm_config_cafile="$ca" NODE_EXTRA_CA_CERTS="$ca" CURL_CA_BUNDLE="$ca"
fi

look() {
	for package; do
		echo "# querying the newest version of $package"
		echo "newest $package $(timeout 900 npm view --prefer-online "$package" version)"
	done
}

watch() {
	while sleep 3; do
		n=$(du -sm $modules 2>/dev/null | cut -f1)
		echo "# installing: ${n:-0} MB so far"
	done
}

# Prints PATH URL INTEGRITY for each package in package-lock.json that fits this platform. All
# tarballs are downloaded from the configured registry, the only reachable host, even if its
# answers name another host. An optional package with a script is skipped, as npm does if the script
# fails: the script compiles for minutes under software emulation, and the agent works without it.
# Debian's npm does not record the libc of a package, so a package for musl is recognized by its
# name.
wanted='
const packages = require(process.cwd() + "/package-lock.json").packages;
const isNot = (x) => x.startsWith("!");
const fits = (list, value) =>
  !list || list.includes(value) || list.every(isNot) && !list.includes("!" + value);
const isSkipped = (path, p) => !path || p.inBundle ||
  p.optional && (p.hasInstallScript || path.endsWith("-musl")) ||
  !fits(p.os, "linux") || !fits(p.cpu, process.arch) || !fits(p.libc, "glibc");
const registry = new URL(process.env.npm_config_registry);
for (const [path, p] of Object.entries(packages)) {
  if (isSkipped(path, p)) continue;
  const url = new URL(p.resolved), integrity = (p.integrity ?? "").split(" ")[0];
  const from =
    url.host === registry.host ? url.href : registry.href.replace(/\/$/, "") + url.pathname;
  const isValid = /^node_modules\/[\w@./-]+$/.test(path) && !path.includes("..") &&
    /^sha(512|384|256|1)-[\w+/=]+$/.test(integrity) && !/\s/.test(from);
  if (!isValid) throw new Error("npm returned no valid path or integrity for " + path);
  console.log(path, from, integrity);
}'

fetch() { # PATH URL INTEGRITY
	file=$plan/package.tgz
	pin=$(echo "${SBX_PINS:-}" | awk -v name="${1#node_modules/}" '$1 == name { print $2 }')
	if [ -n "$pin" ] && [ "$pin" != "$3" ]; then
		echo "${1#node_modules/}: the registry has other content than the one that is pinned" >&2
		return 1
	fi
	curl -fsSL --retry 2 --max-time 1800 -o "$file" "$2" </dev/null || return 1
	if [ "$(openssl dgst "-${3%%-*}" -binary "$file" | base64 -w 0)" != "${3#*-}" ]; then
		echo "$2: the ${3%%-*} differs from the one of the registry" >&2
		return 1
	fi
	directory=$modules/${1#node_modules/}
	mkdir -p "$directory" && tar -xzf "$file" -C "$directory" --strip-components=1 --no-same-owner &&
		chmod -R u+rwX,go+rX "$directory" && rm "$file"
}

# npm selects the packages. curl and tar download and unpack them: under software emulation, npm
# itself takes several times as long.
put() {
	rm -rf "$plan"
	mkdir "$plan"
	echo '{"private": true}' >"$plan/package.json"
	(cd "$plan" && timeout 900 npm install --package-lock-only --ignore-scripts "$@" >&2 &&
		node -e "$wanted" >list) || return 1
	watch &
	watcher=$!
	status=0
	while read -r path url integrity; do
		fetch "$path" "$url" "$integrity" || { status=1; break; }
	done <"$plan/list"
	# Runs scripts and creates the links in /usr/local/bin.
	[ "$status" != 0 ] || timeout 900 npm rebuild -g >&2 || status=1
	kill "$watcher" 2>/dev/null || true
	wait "$watcher" 2>/dev/null || true
	return "$status"
}

install() {
	node=$1 command=$2
	shift 2
	if [ "$node" != - ]; then
		case $(uname -m) in aarch64) arch=arm64 ;; *) arch=x64 ;; esac
		echo "# installing Node.js $node"
		put "node-linux-$arch@$node"
	fi
	if [ $# -gt 0 ]; then
		echo "# installing $*"
		put "$@"
	fi
	hash -r
	echo "# checking that $command starts"
	# Runs as the user agent with a temporary home directory, so that the template does not
	# contain the files of a first start.
	home=$(mktemp -d /var/tmp/sbx-home.XXXXXX)
	chown agent "$home"
	version=$(timeout 600 setpriv --reuid agent --regid agent --init-groups \
		env HOME="$home" "$command" --version 2>/dev/null </dev/null | head -n 1) || true
	[ -n "$version" ] || { echo "$command --version printed nothing" >&2; exit 1; }
	echo "version $version"
	for package; do
		integrity=$(awk -v path="node_modules/${package%@*}" '$1 == path { print $3 }' \
			"$plan/list")
		echo "package ${package%@*} ${package##*@} $integrity"
	done
	echo "# removing temporary files"
	rm -rf "$npm_config_cache" "$ca" "$home" "$HOME/.npm" /tmp/* /var/tmp/*
	sync
}

mode=$1
shift
case $mode in
look) look "$@" ;;
install) install "$@" ;;
*) exit 2 ;;
esac
