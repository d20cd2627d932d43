package providerenv

import (
	"slices"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/trellisctl/shell"
)

func credentials(pairs ...string) map[string][]byte {
	result := map[string][]byte{}
	for pair := range slices.Chunk(pairs, 2) {
		result[pair[0]] = []byte(pair[1])
	}
	return result
}

const account = `{"type":"service_account","project_id":"project-1","private_key":"k","client_email":"a@b"}`

func TestVariables(t *testing.T) {
	for _, test := range []struct {
		providerType string
		credentials  map[string][]byte
		want         string
	}{
		{
			"aws", credentials("accessKeyID", "a", "secretAccessKey", "b'c"), "export AWS_ACCESS_KEY_ID='a';\n" +
				`export AWS_SECRET_ACCESS_KEY='b'\''c';` + "\nexport AWS_DEFAULT_REGION='north';\n",
		},
		{"hcloud", credentials("hcloudToken", "t", "other", "x"), "export HCLOUD_TOKEN='t';\n"},
		{
			"openstack", credentials("domainName", "d", "tenantName", "t", "username", "u", "password", "p"),
			"export OS_PROJECT_DOMAIN_NAME='d';\nexport OS_USER_DOMAIN_NAME='d';\nexport OS_PROJECT_NAME='t';\n" +
				"export OS_USERNAME='u';\nexport OS_PASSWORD='p';\nexport OS_REGION_NAME='north';\n",
		},
	} {
		variables, err := Variables(test.providerType, "north", test.credentials)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Script(variables, shell.Bash)
		if err != nil || got != test.want {
			t.Errorf("%s: got\n%s%v, want\n%s", test.providerType, got, err, test.want)
		}
		names := Names(test.providerType)
		for _, variable := range variables {
			if !slices.Contains(names, variable.Name) {
				t.Errorf("%s is set and not unset", variable.Name)
			}
		}
	}
	if _, err := Variables("aws", "north", credentials("accessKeyID", "a")); err == nil ||
		!strings.Contains(err.Error(), "have no secretAccessKey") {
		t.Errorf("got %v", err)
	}
	got, err := Unset([]string{"A", "B"}, shell.Fish)
	if err != nil || got != "set -e A;\nset -e B;\n" {
		t.Errorf("got %q, %v", got, err)
	}
}

// Credentials make a cloud's tool run a program, read files, or send what it knows elsewhere.
func TestAttackCredentialsThatToolsBelieve(t *testing.T) {
	elsewhere := account[:len(account)-1] + `,"token_uri":"http://a"}`
	flag := strings.Replace(account, "project-1", "--flag", 1)
	executable := `{"type":"external_account","credential_source":{"executable":{"command":"touch hacked"}}}`
	for name, test := range map[string]struct {
		providerType, key, value, want string
	}{
		"a program of Google's":     {"gcp", "serviceaccount.json", executable, "type: must be service_account"},
		"another address of tokens": {"gcp", "serviceaccount.json", elsewhere, "token_uri"},
		"a project that is a flag":  {"gcp", "serviceaccount.json", flag, "project_id"},
		"no JSON":                   {"gcp", "serviceaccount.json", "$(touch hacked)", "JSON"},
		"a file as address":         {"openstack", "authURL", "file:///etc/passwd", "https://HOST"},
		"an address in the clear":   {"openstack", "authURL", "http://a.example", "https://HOST"},
		"an address with a name":    {"openstack", "authURL", "https://b:c@a.example", "https://HOST"},
	} {
		_, err := Variables(test.providerType, "north", credentials("domainName", "d", "tenantName", "t", test.key,
			test.value))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// What else is in a file of Google's gets lost.
	variables, err := Variables("gcp", "north", credentials("serviceaccount.json",
		account[:len(account)-1]+`,"credential_source":{"file":"/etc/passwd"}}`))
	if err != nil || strings.Contains(variables[0].Value, "passwd") ||
		!strings.Contains(variables[0].Value, "project-1") {
		t.Errorf("got %v, %v", variables, err)
	}
}

func TestTemplates(t *testing.T) {
	data := Data{
		ProviderType: "local", Region: "north", ConfigDir: "/tmp/a b",
		Credentials: credentials("token", "it's; touch hacked", "empty", ""),
	}
	for text, want := range map[string]string{
		"export T={{ shellEscape .unsafeSecretData.token }}":                       `export T='it'\''s; touch hacked'`,
		"{{ .unsafeSecretData.token | shellEscape }}":                              `'it'\''s; touch hacked'`,
		`{{ index .unsafeSecretData "token" | shellEscape }}`:                      `'it'\''s; touch hacked'`,
		"{{ shellEscape .unsafeSecretData.empty }}":                                "''",
		"{{ if .unsafeSecretData.none }}a{{ else }}b{{ end }}":                     "b",
		"{{ if .__meta.unset }}unset{{ else }}set{{ end }}":                        "set",
		"{{ .__meta.shell }} {{ .__meta.providerType }} {{ shellEscape .region }}": "bash local 'north'",
		"cd {{ shellEscape .configDir }}":                                          "cd '/tmp/a b'",
		"{{ range $k, $v := .unsafeSecretData }}{{ shellEscape $v }}{{ end }}":     `'''it'\''s; touch hacked'`,
		"{{ with .unsafeSecretData.token }}T={{ shellEscape . }}{{ end }}":         `T='it'\''s; touch hacked'`,
		"{{/* nothing */}}": "",
	} {
		if got, err := Render(text, shell.Bash, data); err != nil || got != want {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
}

// A template that forgets to escape, in whatever way, gives out nothing.
func TestAttackTemplatesThatDoNotEscape(t *testing.T) {
	data := Data{Credentials: credentials("token", "$(touch hacked)")}
	for _, text := range []string{
		"T={{ .unsafeSecretData.token }}", "{{ .unsafeSecretData }}", `{{ printf "%s" .unsafeSecretData.token }}`,
		`{{ printf "%d" .unsafeSecretData.token }}`, `{{ printf "%#v" .unsafeSecretData.token }}`,
		"{{ print .unsafeSecretData.token }}", "{{ html .unsafeSecretData.token }}", "{{ js .unsafeSecretData.token }}",
		"{{ urlquery .unsafeSecretData.token }}", "{{ .unsafeSecretData.token.text }}", "{{ . }}",
		"{{ range .unsafeSecretData }}{{ . }}{{ end }}", "{{ with .unsafeSecretData.token }}{{ . }}{{ end }}",
	} {
		if got, err := Render(text, shell.Bash, data); err == nil || got != "" {
			t.Errorf("%s: got %s, %v", text, got, err)
		}
	}
}
