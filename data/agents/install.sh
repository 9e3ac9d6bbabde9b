#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# install - what `sbx template build AGENT` runs as root in a sandbox of its own: npm packages with exact versions, and the proof that they
# start. Only the registry can be reached from there, and nothing that is a secret.
#
# usage: sh -s -- look PACKAGE...                                       prints `newest PACKAGE VERSION`
#        sh -s -- install NODE COMMAND PACKAGE@VERSION...               NODE is a version or -; prints `package NAME VERSION INTEGRITY`
#
# The registry is in npm_config_registry. Lines that begin with # are progress.
set -eu

ca=/var/tmp/sbx-npm-ca.pem
plan=/var/tmp/sbx-npm-plan
modules=/usr/local/lib/node_modules
export npm_config_cache=/var/tmp/sbx-npm-cache npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
export npm_config_fetch_retries=2 npm_config_loglevel=error npm_config_progress=false npm_config_engine_strict=false HOME=/root
if [ -s "$ca" ]; then
	export npm_config_cafile="$ca" NODE_EXTRA_CA_CERTS="$ca" CURL_CA_BUNDLE="$ca"
fi

look() {
	for package; do
		echo "# looking for the newest $package"
		echo "newest $package $(timeout 900 npm view --prefer-online "$package" version)"
	done
}

watch() {
	while sleep 3; do
		n=$(du -sm $modules 2>/dev/null | cut -f1)
		echo "# installing: ${n:-0} MB so far"
	done
}

# What npm found: a line for each package that is for this kind of machine: PATH URL INTEGRITY. Tarballs come from the registry that is configured,
# the only host there is, whatever name its answers give. An optional package with a script is left out, as npm does when the script fails: it compiles
# something, for minutes under software emulation, that the agent works without. Debian's npm does not write down for which libc a package is: the name
# of one for musl says so, and it is as large as its twin.
wanted='
const packages = require(process.cwd() + "/package-lock.json").packages;
const isNot = (x) => x.startsWith("!");
const fits = (list, value) => !list || list.includes(value) || list.every(isNot) && !list.includes("!" + value);
const registry = new URL(process.env.npm_config_registry);
for (const [path, p] of Object.entries(packages)) {
  if (!path || p.inBundle || p.optional && (p.hasInstallScript || path.endsWith("-musl")) || !fits(p.os, "linux") || !fits(p.cpu, process.arch) || !fits(p.libc, "glibc")) continue;
  const url = new URL(p.resolved), integrity = (p.integrity ?? "").split(" ")[0];
  const from = url.host === registry.host ? url.href : registry.href.replace(/\/$/, "") + url.pathname;
  const good = /^node_modules\/[\w@./-]+$/.test(path) && !path.includes("..") && /^sha(512|384|256|1)-[\w+/=]+$/.test(integrity) && !/\s/.test(from);
  if (!good) throw new Error("npm gives no place or no integrity for " + path);
  console.log(path, from, integrity);
}'

fetch() { # PATH URL INTEGRITY
	file=$plan/package.tgz
	curl -fsSL --retry 2 --max-time 1800 -o "$file" "$2" </dev/null || return 1
	if [ "$(openssl dgst "-${3%%-*}" -binary "$file" | base64 -w 0)" != "${3#*-}" ]; then
		echo "$2 is not what the registry says it is: its ${3%%-*} differs" >&2
		return 1
	fi
	folder=$modules/${1#node_modules/}
	mkdir -p "$folder" && tar -xzf "$file" -C "$folder" --strip-components=1 --no-same-owner && chmod -R u+rwX,go+rX "$folder" && rm "$file"
}

# npm says which packages; they are fetched and unpacked by curl and tar: under software emulation npm's own streams take several times as long.
put() {
	rm -rf "$plan"
	mkdir "$plan"
	echo '{"private": true}' >"$plan/package.json"
	(cd "$plan" && timeout 900 npm install --package-lock-only --ignore-scripts "$@" >&2 && node -e "$wanted" >list) || return 1
	watch &
	watcher=$!
	status=0
	while read -r path url integrity; do
		fetch "$path" "$url" "$integrity" || { status=1; break; }
	done <"$plan/list"
	# scripts, and the links in /usr/local/bin
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
	echo "# looking whether $command starts"
	# as the agent, in a home that is thrown away: what a first start writes is no part of the template
	home=$(mktemp -d /var/tmp/sbx-home.XXXXXX)
	chown agent "$home"
	version=$(timeout 600 setpriv --reuid agent --regid agent --init-groups env HOME="$home" "$command" --version 2>/dev/null </dev/null | head -n 1) || true
	[ -n "$version" ] || { echo "$command --version does not answer" >&2; exit 1; }
	echo "version $version"
	for package; do
		echo "package ${package%@*} ${package##*@} $(awk -v path="node_modules/${package%@*}" '$1 == path { print $3 }' "$plan/list")"
	done
	echo "# clearing up"
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
