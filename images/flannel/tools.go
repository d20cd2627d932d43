//go:build tools

// Package flannel pins the version of flannel that the landscape builds.
package flannel

import _ "github.com/flannel-io/flannel"
