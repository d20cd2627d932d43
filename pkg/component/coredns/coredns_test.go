package coredns

import (
	"regexp"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/component/golden"
)

func TestObjects(t *testing.T) {
	golden.Check(t, "objects", Objects(Values{Image: "coredns:v1", ClusterIP: "10.4.0.10"})...)
}

func TestRewriting(t *testing.T) {
	rules := rewriting([]string{".example.com", "other.org"}, "cluster.local")
	want := `    rewrite stop name regex ^(.+\.example\.com)\.[^.]+\.svc\.cluster\.local\.?$ {1} answer auto
    rewrite stop name regex ^((?:.+\.)?other\.org)\.[^.]+\.svc\.cluster\.local\.?$ {1} answer auto
`
	if rules != want {
		t.Errorf("rules are\n%s", rules)
	}
	if file := corefile(Values{
		ClusterDomain: "cluster.local", CommonSuffixes: []string{".example.com"},
	}); strings.Index(file, "rewrite stop") > strings.Index(file, "kubernetes cluster.local") {
		t.Error("names are rewritten after they were looked up")
	}
}

func TestSearched(t *testing.T) {
	for _, test := range []struct{ suffix, question, name string }{
		{".example.com", "a.example.com.default.svc.cluster.local.", "a.example.com"},
		{".example.com", "b.a.example.com.my-ns.svc.cluster.local.", "b.a.example.com"},
		{".example.com", "example.com.default.svc.cluster.local.", ""},
		{"example.com", "example.com.default.svc.cluster.local.", "example.com"},
		{"example.com", "a.example.com.default.svc.cluster.local.", "a.example.com"},
		{"example.com", "myexample.com.default.svc.cluster.local.", ""},
		{".example.com", "a.example.com.svc.cluster.local.", ""},
		{".example.com", "a.example.com.", ""},
		{".example.com", "a.exampleXcom.default.svc.cluster.local.", ""},
		{".example.com", "web.default.svc.cluster.local.", ""},
	} {
		got := ""
		if match := regexp.MustCompile(searched(test.suffix,
			"cluster.local")).FindStringSubmatch(test.question); match != nil {
			got = match[1]
		}
		if got != test.name {
			t.Errorf("%s: %s becomes %q, want %q", test.suffix, test.question, got, test.name)
		}
	}
}
