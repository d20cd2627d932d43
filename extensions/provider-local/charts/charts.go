// Package charts holds the Helm charts of provider-local, embedded for those who install them: local-cloud and
// local-issuer by the landscape, provider-local through a ControllerDeployment.
package charts

import "embed"

// FS has the folders local-cloud, local-issuer and provider-local.
//
//go:embed all:local-cloud all:local-issuer all:provider-local
var FS embed.FS
