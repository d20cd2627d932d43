// Package charts holds the Helm charts of Trellis' own parts and the image vector, embedded so that one binary can
// install them.
package charts

import "embed"

// FS holds one folder per chart and images.yaml.
//
//go:embed all:*
var FS embed.FS
