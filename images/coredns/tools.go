//go:build tools

// Package coredns pins the version of CoreDNS that the landscape builds.
package coredns

import _ "github.com/coredns/coredns"
