#!/usr/bin/env bash
# A package imports downwards only: cmd → process packages → component, flow, secrets → apis. Extensions import
# extensions/pkg, pkg/apis and leaf libraries, never a process package.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/trellis-garden/trellis
processes='apiserver|controllermanager|scheduler|gardenlet|resourcemanager|nodeagent|landscape|trellisctl|dashboard'
libraries='component|apply|managedresources|errorcodes|flow|secrets|extensionuse|gardenletconfig|imagevector|helm|etcd'
libraries+='|vpn'
imports='{{$p := .ImportPath}}{{range .Imports}}{{$p}} {{.}}{{"\n"}}{{end}}'
go list -f "$imports" ./... | awk -v m="$module" -v processes="$processes" -v libraries="$libraries" '
  index($2, m "/") != 1 { next }
  { from = substr($1, length(m) + 2); to = substr($2, length(m) + 2); reason = "" }
  from ~ "^pkg/apis(/|$)" && to !~ "^pkg/apis(/|$)" { reason = "API types import nothing above them" }
  from ~ "^pkg/(" libraries ")(/|$)" && to ~ "^pkg/(" processes ")(/|$)" {
    reason = "a library must not import a process package"
  }
  from ~ "^pkg/federation/(core|overrides)(/|$)" && to ~ "^pkg/federation/controllers" {
    reason = "the pure core must not import controllers"
  }
  from ~ "^pkg/gardenlet/shoot/(plan|components)$" && to ~ "^pkg/gardenlet/shoot/" &&
    to !~ "^pkg/gardenlet/shoot/(plan|components|cleanup)$" {
    reason = "what a shoot is to be is decided without what brings it about"
  }
  from ~ "^extensions/" && to ~ "^pkg/(" processes ")(/|$)" {
    reason = "an extension must not import a process package"
  }
  from ~ "^pkg/" && to ~ "^(cmd|extensions|test)/" { reason = "pkg must not import cmd, extensions or test" }
  to ~ "^cmd/" { reason = "nothing imports cmd" }
  to ~ "^pkg/vpn/wireguard(/|$)" && from !~ "^(pkg/vpn/wireguard|cmd/vpn)(/|$)" {
    reason = "a tunnel is known by pkg/vpn/transport; which it is, cmd/vpn chooses"
  }
  reason != "" { print from " imports " to ": " reason; bad = 1 }
  END { exit bad }'
