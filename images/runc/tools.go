//go:build tools

// Package runc pins the version of runc that machines and the landscape's node run.
package runc

import _ "github.com/opencontainers/runc"
