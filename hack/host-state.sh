#!/usr/bin/env bash
# Prints what a landscape could leave behind on this machine, so that before and after can be compared: mounts, links,
# addresses, routes, firewall rules, named network namespaces, cgroups, listening ports, kernel settings, and processes
# that run from this clone. What is known to be of another clone's landscapes is left out: they come and go when they
# please.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

# The other clones' landscapes, by their names and by their loopback addresses as /proc/net/tcp writes them. Of these a
# landscape has several, which differ in the last byte.
others='^$'
for record in /run/trellis/*.json; do
  [ -e "$record" ] || continue
  field() { sed -n "s/^ *\"$1\": *\"\(.*\)\".*/\1/p" "$record" 2>/dev/null || true; }
  case "$(field dir)" in "$root"/*) continue ;; esac
  name=$(basename "$record" .json)
  IFS=. read -r a b c _ <<<"$(field loopback)"
  others+=$(printf '|(^|/trellis-)%s(\.json|\.lock|/.*)?$|^..%02X%02X%02X:' "$name" "${c:-0}" "${b:-0}" "${a:-0}")
done
own() { grep -vE "$others" || true; }

section() { printf '== %s\n' "$1"; }

section mounts
awk '{print $5, $4}' /proc/self/mountinfo | sort
section links
ls /sys/class/net
section routes
cat /proc/net/route
awk '$10 != "lo" {print $1, $2, $5, $6, $10}' /proc/net/ipv6_route
section "firewall rules"
for program in iptables-save ip6tables-save; do
  if command -v "$program" >/dev/null; then "$program" | sed 's/\[[0-9:]*\]//; /^#/d'; fi
done
if command -v nft >/dev/null; then nft list ruleset | sed 's/packets [0-9]* bytes [0-9]*//'; fi
section "network namespaces"
ls -A /run/netns 2>/dev/null || true
section cgroups
find /sys/fs/cgroup -type d -name '*trellis*' | own | sort
section "listening ports of loopback addresses other than 127.0.0.1"
awk '$4 == "0A" && $2 ~ /7F:/ && $2 !~ /^0100007F:/ {print $2}' /proc/net/tcp | own | sort
section "kernel settings"
for name in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/pid_max \
  kernel/keys/root_maxkeys kernel/keys/root_maxbytes net/ipv4/ip_forward; do
  printf '%s %s\n' "$name" "$(cat "/proc/sys/$name" 2>/dev/null || echo -)"
done
section records
{ ls -A /run/trellis 2>/dev/null || true; } | own
section "processes of this clone"
for process in /proc/[0-9]*; do
  case "$(readlink "$process/exe" 2>/dev/null || true)" in
    "$root"/*) printf '%s\n' "$(tr '\0\n' '  ' <"$process/cmdline" 2>/dev/null || true)" ;;
  esac
done | sort
