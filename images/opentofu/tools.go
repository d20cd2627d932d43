//go:build tools

// Package opentofu pins the version of OpenTofu that is built where no terraform or tofu is on PATH.
package opentofu

import _ "github.com/opentofu/opentofu/cmd/tofu"
