// Package version tells which build of Trellis this is.
package version

// Version is the release, e.g. "v0.1.0". Builds set it with
// -ldflags "-X github.com/trellis-garden/trellis/pkg/version.Version=<version>".
// It is also the tag of Trellis' own images.
var Version = "dev"

// Commit is the source revision of the build, set in the same way; empty when unknown.
var Commit = ""

// String returns the version with the commit where that is known.
func String() string {
	if Commit == "" {
		return Version
	}
	return Version + "+" + Commit
}
