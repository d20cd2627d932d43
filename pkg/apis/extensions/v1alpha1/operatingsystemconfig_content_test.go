package v1alpha1

import (
	"strings"
	"testing"
)

func TestContentOfFiles(t *testing.T) {
	for name, test := range map[string]struct{ encoding, data, want, err string }{
		"plain":         {"", "text", "text", ""},
		"base64":        {"b64", "dGV4dA==", "text", ""},
		"compressed":    {"gzip+b64", "H4sIAAAAAAACAytJrSgBAMenizsEAAAA", "text", ""},
		"not base64":    {"b64", "%", "", "illegal base64"},
		"unknown":       {"rot13", "grkg", "", `unknown encoding "rot13"`},
		"no archive":    {"gzip", "text", "", "unexpected EOF"},
		"nothing in it": {"", "", "", ""},
	} {
		got, err := (&FileContentInline{Encoding: test.encoding, Data: test.data}).Decode()
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got %q, %v", name, got, err)
			}
			continue
		}
		if err != nil || string(got) != test.want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
