// Package charts holds the Helm chart of extension-federation, embedded for those who put it into a
// ControllerDeployment.
package charts

import "embed"

// FS has the folder extension-federation.
//
//go:embed all:extension-federation
var FS embed.FS
