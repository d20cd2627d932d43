package login

import (
	"net/url"
	"strings"
	"testing"
)

func TestLocalPath(t *testing.T) {
	for next, wanted := range map[string]string{
		"": "/", "/": "/", "/projects/a": "/projects/a", "/x?y=z#w": "/x?y=z#w", "projects": "/",
		"https://evil.example": "/", "//evil.example": "/", "/\\evil.example": "/", "\\\\evil.example": "/",
		"/\t/evil.example": "/", "/\n/evil.example": "/", " //evil.example": "/", "/%2f%2fevil.example": "/",
		"javascript:alert(1)": "/", "/api/logout": "/", "/x/../api/logout": "/", "/%61pi/logout": "/",
		"///evil.example": "/", "/%5cevil.example": "/", "/\u2028": "/", strings.Repeat("/a", 2000): "/",
	} {
		if got := LocalPath(next); got != wanted {
			t.Errorf("%q: %q, want %q", next, got, wanted)
		}
	}
}

// Whatever is asked for, a browser stays at the site.
func FuzzLocalPath(f *testing.F) {
	for _, next := range []string{"/projects", "//evil.example", "/\\evil.example", "/%2f/evil.example", "https:/x",
		"/x?//y"} {
		f.Add(next)
	}
	site, _ := url.Parse("https://dashboard.example/login")
	f.Fuzz(func(t *testing.T, next string) {
		got := LocalPath(next)
		target, err := site.Parse(got)
		if err != nil || target.Host != site.Host || target.Scheme != "https" || target.User != nil {
			t.Errorf("%q leads to %v (%v)", next, target, err)
		}
		if strings.ContainsAny(got, "\\\r\n\t ") || strings.HasPrefix(got, "//") {
			t.Errorf("%q becomes %q", next, got)
		}
	})
}

// A kubeconfig that is taken has a credential for the garden, and nothing that reads files or runs.
func FuzzParseKubeconfig(f *testing.F) {
	const head = "apiVersion: v1\nkind: Config\ncurrent-context: x\n" +
		"contexts: [{name: x, context: {cluster: x, user: x}}]\n" +
		"clusters: [{name: x, cluster: {server: 'https://garden.example'}}]\n"
	for _, user := range []string{"{token: abc}", "{token: 'a b'}", "{exec: {command: sh}}", "{tokenFile: /x}",
		"{as: root, token: x}",
		"{username: x, password: y}", "{client-certificate-data: eA==, client-key-data: eA==}"} {
		f.Add(head + "users: [{name: x, user: " + user + "}]\n")
	}
	garden, _ := url.Parse("https://garden.example:443")
	f.Fuzz(func(t *testing.T, text string) {
		credential, err := ParseKubeconfig(text, []*url.URL{garden})
		if err != nil {
			return
		}
		if credential.Token == "" && len(credential.Certificate) == 0 {
			t.Errorf("no credential in %q", text)
		}
		if credential.Token != "" && checkToken(credential.Token) != nil {
			t.Errorf("token %q", credential.Token)
		}
	})
}
