package redact

import (
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// body stands for what must not be seen: of a key, a password, or a token.
const body = "MC4CAQAwBQYDK2VwBCIEIHunter2Hunter2Hunter2"

const pemKey = "-----BEGIN PRIVATE KEY-----\n" + body + "\n-----END PRIVATE KEY-----\n"

func TestTextWithoutSecrets(t *testing.T) {
	jwt := "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlcm5ldGVzIn0.c2lnbmF0dXJl"
	for name, test := range map[string]struct{ text, want string }{
		"nothing":             {"The API answers; 3 of 3 nodes are ready.", "The API answers; 3 of 3 nodes are ready."},
		"a key":               {"a\n" + pemKey + "b", "a\n[redacted]\nb"},
		"an RSA key":          {strings.ReplaceAll(pemKey, "PRIVATE", "RSA PRIVATE"), "[redacted]\n"},
		"an SSH key":          {strings.ReplaceAll(pemKey, "PRIVATE", "OPENSSH PRIVATE"), "[redacted]\n"},
		"a PGP key":           {strings.ReplaceAll(pemKey, "PRIVATE KEY", "PGP PRIVATE KEY BLOCK"), "[redacted]\n"},
		"a key, cut off":      {"a\n-----BEGIN EC PRIVATE KEY-----\n" + body, "a\n[redacted]"},
		"a key without start": {"x: " + body + "\n" + body + "\n-----END EC PRIVATE KEY-----\nb", "x: [redacted]\nb"},
		"a key in JSON":       {`{"k":"` + strings.ReplaceAll(pemKey, "\n", `\n`) + `"}`, `{"k":"[redacted]\n"}`},
		"lines of a key":      {"a\n" + strings.Repeat("aB3/", 16) + "\nb", "a\n[redacted]\nb"},
		"a certificate": {
			"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
			"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		},
		"a token of an account":  {"got " + jwt + ", which", "got [redacted], which"},
		"a header":               {"Authorization: Digest username=a, response=b", "Authorization: [redacted]"},
		"a bearer":               {"with bearer abcdefgh.ijk and", "with bearer [redacted] and"},
		"a field of YAML":        {"  password: correct horse\nb: c", "  password: [redacted]\nb: c"},
		"a field of JSON":        {`{"clientSecret":"a \"b\"","c":1}`, `{"clientSecret":[redacted],"c":1}`},
		"JSON in JSON":           {`"{\"token\":\"abc\",\"c\":1}"`, `"{\"token\":[redacted],\"c\":1}"`},
		"a variable":             {"AWS_SECRET_ACCESS_KEY=abc next", "AWS_SECRET_ACCESS_KEY=[redacted] next"},
		"a flag":                 {"run --auth-token abc --v 2", "run --auth-token [redacted] --v 2"},
		"a flag with =":          {"run --auth-token=abc --v 2", "run --auth-token=[redacted] --v 2"},
		"a name of a Secret":     {"secretName: cloudprovider", "secretName: cloudprovider"},
		"a pair behind a name":   {"secretName: password=abc", "secretName: password=[redacted]"},
		"a URL":                  {"at https://user:pass@a.example/b", "at https://[redacted]@a.example/b"},
		"a URL with a port":      {"at https://a.example:443/b", "at https://a.example:443/b"},
		"a bootstrap token":      {"id abcdef.0123456789abcdef.", "id [redacted]."},
		"an access key":          {"key AKIAABCDEFGHIJKLMNOP.", "key [redacted]."},
		"a key of WireGuard":     {"key yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk= of", "key [redacted] of"},
		"a digest of an image":   {"a@sha256:" + strings.Repeat("0a", 32), "a@sha256:" + strings.Repeat("0a", 32)},
		"what was redacted":      {"token: [redacted]", "token: [redacted]"},
		"what was, in quotes":    {`"token":"[redacted]",`, `"token":"[redacted]",`},
		"a message about Secret": {`secrets "a" not found in namespace b`, `secrets "a" not found in namespace b`},
	} {
		if got := Text(test.text); got != test.want {
			t.Errorf("%s: got\n%q, want\n%q", name, got, test.want)
		}
	}
}

// What is base64 hides nothing, once or twice, and wherever in a word it begins.
func TestEncodedSecrets(t *testing.T) {
	once := base64.StdEncoding.EncodeToString([]byte("apiVersion: v1\nkind: Config\nusers:\n- user: {token: abc}\n"))
	twice := base64.StdEncoding.EncodeToString([]byte(base64.URLEncoding.EncodeToString([]byte(pemKey))))
	for _, text := range []string{once, twice, "ab/" + once, "a/" + once, "/" + once, "data:" + twice + ";"} {
		if got := Text(text); strings.Contains(got, once) || strings.Contains(got, twice) {
			t.Errorf("%s stays", text)
		}
	}
	harmless := base64.StdEncoding.EncodeToString([]byte("the quick brown fox jumps over the lazy dog"))
	if got := Text(harmless); got != harmless {
		t.Errorf("got %s", got)
	}
}

func object(t *testing.T, text string) map[string]any {
	t.Helper()
	var result map[string]any
	if err := yaml.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	return result
}

func TestObjectsWithoutSecrets(t *testing.T) {
	got := Object(object(t, `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Infrastructure
metadata:
  name: one
  managedFields: [{manager: a}]
  annotations:
    kubectl.kubernetes.io/last-applied-configuration: '{"a":"hunter2"}'
    kept: value
spec:
  secretRef: {name: cloudprovider, namespace: ns}
  imagePullSecrets: [{name: pull}]
  sshPrivateKey: hunter2
  tokens: [hunter2]
  automountServiceAccountToken: false
  credentialsRef: {kind: Secret, name: cloudprovider}
  embedded: {apiVersion: v1, kind: Secret, data: {a: hunter2}}
  files: [{path: /a, content: {inline: {encoding: b64, data: hunter2}}}]
  containers:
  - env: [{name: DB_PASSWORD, value: hunter2}, {name: GOMEMLIMIT, value: 1Gi}]
    args: [--auth-token, hunter2, --v, "2", --password=hunter2]
status:
  state: {key: hunter2}
  message: "password=hunter2"
`))
	want := object(t, `
apiVersion: extensions.gardener.cloud/v1alpha1
kind: Infrastructure
metadata:
  name: one
  annotations: {kubectl.kubernetes.io/last-applied-configuration: '[redacted]', kept: value}
spec:
  secretRef: {name: cloudprovider, namespace: ns}
  imagePullSecrets: [{name: pull}]
  sshPrivateKey: '[redacted]'
  tokens: '[redacted]'
  automountServiceAccountToken: false
  credentialsRef: {kind: Secret, name: cloudprovider}
  embedded: '[redacted]'
  files: [{path: /a, content: {inline: '[redacted]'}}]
  containers:
  - env: [{name: DB_PASSWORD, value: '[redacted]'}, {name: GOMEMLIMIT, value: 1Gi}]
    args: [--auth-token, '[redacted]', --v, "2", '--password=[redacted]']
status:
  state: '[redacted]'
  message: password=[redacted]
`)
	gotText, wantText := asJSON(t, got), asJSON(t, want)
	if gotText != wantText {
		t.Errorf("got\n%s\nwant\n%s", gotText, wantText)
	}
	if secret := asJSON(t, Object(object(t, "{kind: Secret, data: {a: hunter2}}"))); strings.Contains(secret, "hunter2") {
		t.Errorf("got %s", secret)
	}
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A state of pods is none of extensions.
func TestStatesOfPodsStay(t *testing.T) {
	pod := object(t, "{kind: Pod, apiVersion: v1, status: {containerStatuses: [{state: {waiting: {reason: Crash}}}]}}")
	if got := asJSON(t, Object(pod)); got != asJSON(t, pod) {
		t.Errorf("got %s", got)
	}
}

var beginning = regexp.MustCompile(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`)

// Whatever stands around a secret, it does not come through; and so for what is in an object.
func FuzzSecretsDoNotComeThrough(f *testing.F) {
	for _, text := range []string{
		"", "password: \"", "-----BEGIN RSA PRIVATE KEY-----", "-----END PRIVATE KEY-----", "secretName: token=", `{"a":"\`,
		"-----BEGIN ", "eyJ", "[redacted]", "token: 'a", "AAAA", "Bearer ",
	} {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, before, after string) {
		const word = "Zq7Hunter2Zq7"
		inBase64 := base64.StdEncoding.EncodeToString([]byte(pemKey))
		if strings.Contains(before+after, "Hunter2") {
			return
		}
		if strings.Contains(before+after, "Hunter2") || strings.Contains(before+after, inBase64) {
			return
		}
		for _, text := range []string{
			before + "\n" + pemKey + after,
			before + "\n" + inBase64 + "\n" + after,
			before + "\npassword: " + word + "\n" + after,
			before + "\nexport DB_PASSWORD=" + word + "\n" + after,
			before + "\n{\"token\":\"" + word + "\"}\n" + after,
		} {
			got := Text(text)
			if strings.Contains(got, "Hunter2") || strings.Contains(got, inBase64) || beginning.MatchString(got) {
				t.Errorf("%q became %q", text, got)
			}
			inside := asJSON(t, Object(map[string]any{"a": []any{map[string]any{"b": text}}}))
			if strings.Contains(inside, "Hunter2") {
				t.Errorf("%q became %s", text, inside)
			}
		}
	})
}
