package charts_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/trellis-garden/trellis/pkg/apiserverconfig"
)

const authenticationName = "garden-kube-apiserver-authentication"

// issuersWith renders the chart and reads the configuration as kube-apiserver does.
func issuersWith(t *testing.T, issuers ...any) *apiserver.AuthenticationConfiguration {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder()
	given := map[string]any{"authentication": map[string]any{"issuers": issuers}}
	for _, found := range objectsWith[corev1.ConfigMap](t, "garden", "ConfigMap", given) {
		if found.Name != authenticationName {
			continue
		}
		config, err := runtime.Decode(decoder, []byte(found.Data[apiserverconfig.KeyConfig]))
		if err != nil {
			t.Fatal(err)
		}
		return config.(*apiserver.AuthenticationConfiguration)
	}
	return nil
}

func TestIssuersOfTheGarden(t *testing.T) {
	const authority = "-----BEGIN CERTIFICATE-----\nline: \"quoted\"\n-----END CERTIFICATE-----\n"
	config := issuersWith(t,
		map[string]any{
			"url": "https://one.example", "audiences": []any{"a"}, "username": map[string]any{"prefix": "one:"},
		},
		map[string]any{
			"url": "https://two.example", "discoveryURL": "https://inside.example/keys", "audiences": []any{"a", "b"},
			"username": map[string]any{"claim": "email", "prefix": "two:"},
			"groups":   map[string]any{"claim": "roles", "prefix": "team: #"},
		})
	if errs := validation.ValidateAuthenticationConfiguration(authenticationcel.NewDefaultCompiler(), config,
		nil); len(errs) > 0 {
		t.Fatal(errs.ToAggregate())
	}
	one, two := config.JWT[0], config.JWT[1]
	if one.ClaimMappings.Username.Claim != "sub" || *one.ClaimMappings.Username.Prefix != "one:" ||
		one.ClaimMappings.Groups.Claim != "" {
		t.Errorf("defaults of claims: %+v", one.ClaimMappings)
	}
	if two.Issuer.DiscoveryURL != "https://inside.example/keys" || len(two.Issuer.Audiences) != 2 ||
		two.ClaimMappings.Username.Claim != "email" || *two.ClaimMappings.Username.Prefix != "two:" ||
		two.ClaimMappings.Groups.Claim != "roles" || *two.ClaimMappings.Groups.Prefix != "team: #" {
		t.Errorf("claims: %+v of %+v", two.ClaimMappings, two.Issuer)
	}
	var open []string
	for _, condition := range config.Anonymous.Conditions {
		open = append(open, condition.Path)
	}
	if !config.Anonymous.Enabled || strings.Join(open, " ") != "/livez /readyz /healthz" {
		t.Errorf("anonymous requests reach %q", open)
	}
	config = issuersWith(t, map[string]any{
		"url": "https://one.example", "audiences": []any{"a"}, "certificateAuthority": authority,
	})
	if got := config.JWT[0].Issuer.CertificateAuthority; got != authority {
		t.Errorf("authority %q", got)
	}
	if got := *config.JWT[0].ClaimMappings.Username.Prefix; got != "" {
		t.Errorf("a single issuer has prefix %q", got)
	}
}

func TestWithoutIssuersTheGardenIsAsItWas(t *testing.T) {
	if config := issuersWith(t); config != nil {
		t.Errorf("a configuration without issuers: %+v", config)
	}
}

// An issuer that is not said whole would take everybody's tokens, or nobody's: the chart is not installed.
func TestIssuersAreSaidWhole(t *testing.T) {
	for _, issuer := range []map[string]any{{"url": "https://one.example"}, {"audiences": []any{"a"}}} {
		_, err := render(t, "garden",
			map[string]any{"authentication": map[string]any{"issuers": []any{issuer}}})
		if err == nil || !strings.Contains(err.Error(), "authentication.issuers") {
			t.Errorf("%v: %v", issuer, err)
		}
	}
}

// issuerOf is an issuer with prefixes of users and groups.
func issuerOf(name, users, groups string) map[string]any {
	return map[string]any{
		"url": "https://" + name + ".example", "audiences": []any{name}, "username": map[string]any{"prefix": users},
		"groups": map[string]any{"claim": "groups", "prefix": groups},
	}
}

// No issuer tells users or groups of another one: with prefixes that allow it the chart is not installed.
func TestAttackIssuerOfUsersOfAnother(t *testing.T) {
	for name, test := range map[string]struct {
		issuers []any
		want    string // a part of the error; empty for none
	}{
		"a single one":          {[]any{issuerOf("one", "", "")}, ""},
		"prefixes of their own": {[]any{issuerOf("one", "one:", "one:"), issuerOf("two", "two:", "two:")}, ""},
		"users without":         {[]any{issuerOf("one", "", "one:"), issuerOf("two", "two:", "two:")}, "username.prefix"},
		"the later one without": {[]any{issuerOf("one", "one:", "one:"), issuerOf("two", "", "two:")}, "username.prefix"},
		"the same users":        {[]any{issuerOf("one", "x:", "one:"), issuerOf("two", "x:", "two:")}, "username.prefix"},
		"the beginning of another": {
			[]any{issuerOf("one", "x:y:", "one:"), issuerOf("two", "x:", "two:")}, "username.prefix",
		},
		"groups without":  {[]any{issuerOf("one", "one:", "one:"), issuerOf("two", "two:", "")}, "groups.prefix"},
		"the same groups": {[]any{issuerOf("one", "one:", "x:"), issuerOf("two", "two:", "x:")}, "groups.prefix"},
		"groups of one only": {
			[]any{issuerOf("one", "one:", ""), map[string]any{
				"url": "https://two.example", "audiences": []any{"two"}, "username": map[string]any{"prefix": "two:"},
			}}, "",
		},
	} {
		_, err := render(t, "garden", map[string]any{"authentication": map[string]any{"issuers": test.issuers}})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
}

// Every issuer is held to names that are not the garden's own.
func TestAttackNamesOfTheGarden(t *testing.T) {
	config := issuersWith(t, issuerOf("one", "one:", "one:"), issuerOf("two", "two:", "two:"))
	for _, authenticator := range config.JWT {
		var rules []string
		for _, rule := range authenticator.UserValidationRules {
			rules = append(rules, rule.Expression)
		}
		for _, wanted := range []string{
			"!user.username.startsWith('system:')", "!user.username.startsWith('gardener.cloud:')",
			"!group.startsWith('system:')", "!group.startsWith('gardener.cloud:')",
		} {
			if !strings.Contains(strings.Join(rules, " && "), wanted) {
				t.Errorf("%s: rules %q lack %s", authenticator.Issuer.URL, rules, wanted)
			}
		}
	}
}
