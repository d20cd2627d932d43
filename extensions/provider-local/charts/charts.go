// Package charts holds the Helm charts of provider-local, embedded for those who install them: local-cloud by the
// landscape, provider-local through a ControllerDeployment.
package charts

import "embed"

// FS has the folders local-cloud and provider-local.
//
//go:embed all:local-cloud all:provider-local
var FS embed.FS
