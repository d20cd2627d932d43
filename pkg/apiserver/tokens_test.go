package apiserver

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestTokenOptions(t *testing.T) {
	for name, test := range map[string]struct {
		change  func(*tokenOptions)
		message string
	}{
		"as it is": {func(*tokenOptions) {}, ""},
		"issuer and key": {
			func(o *tokenOptions) { o.Issuer, o.SigningKeyFile = "https://issuer.example.com", "key" }, "",
		},
		"issuer without key": {
			func(o *tokenOptions) { o.Issuer = "https://issuer.example.com" }, "--workload-identity-signing-key-file",
		},
		"key without issuer": {
			func(o *tokenOptions) { o.SigningKeyFile = "key" }, "--workload-identity-token-issuer",
		},
		"issuer without https": {
			func(o *tokenOptions) { o.Issuer, o.SigningKeyFile = "http://issuer.example.com", "key" }, "https://",
		},
		"short": {
			func(o *tokenOptions) { o.Limits.Min = time.Minute }, "--workload-identity-token-min-expiration 1m0s",
		},
		"default too short": {
			func(o *tokenOptions) { o.Limits.Default = time.Minute },
			"--workload-identity-token-default-expiration 1m0s",
		},
		"least more than most": {func(o *tokenOptions) { o.Limits.Min = 100 * time.Hour }, "is more than"},
	} {
		options := newTokenOptions()
		test.change(&options)
		err := errors.Join(options.validate()...)
		if test.message == "" && err != nil ||
			test.message != "" && (err == nil || !strings.Contains(err.Error(), test.message)) {
			t.Errorf("%s: error %v, want %q", name, err, test.message)
		}
	}
	options := newTokenOptions()
	if issuer, err := options.issuer(); issuer != nil || err != nil {
		t.Errorf("without a key there is %v, %v", issuer, err)
	}
	options.SigningKeyFile = "/nowhere/key.pem"
	if _, err := options.issuer(); err == nil ||
		!strings.Contains(err.Error(), "--workload-identity-signing-key-file: open /nowhere/key.pem") {
		t.Errorf("error = %v", err)
	}
}
