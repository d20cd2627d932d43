//go:build tools

// Package metricsserver pins the version of metrics-server that the landscape builds.
package metricsserver

import _ "sigs.k8s.io/metrics-server/cmd/metrics-server"
