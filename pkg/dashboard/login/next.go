// Package login begins, renews and ends sessions: by an OIDC issuer, a token, or a kubeconfig. The garden says whom it
// takes.
package login

import (
	"net/url"
	"strings"
)

// home is where who is logged in begins.
const home = "/"

// LocalPath gives a page of the dashboard to go to after the log-in: what was asked for if it is one, the first page
// otherwise. No browser takes it for the address of another site.
func LocalPath(next string) string {
	if len(next) > 2000 || !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") ||
		strings.ContainsFunc(next, func(r rune) bool { return r <= ' ' || r == '\\' || r == 0x7f || r > 0x7e }) {
		return home
	}
	parsed, err := url.Parse(next)
	if err != nil || parsed.IsAbs() || parsed.Host != "" || parsed.User != nil || strings.HasPrefix(parsed.Path,
		"//") ||
		strings.Contains(parsed.Path, "\\") || isAPI(parsed.Path) {
		return home
	}
	return next
}

// isAPI tells of paths that are no pages. One with dots might be, once they are resolved.
func isAPI(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || strings.Contains(path, "/.")
}
