// Package providerenv makes environment variables for the command line tools of clouds out of the credentials of a
// shoot. The credentials are written by others: nothing in them is believed.
package providerenv

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/trellis-garden/trellis/pkg/trellisctl/shell"
)

// Variable is one of the environment.
type Variable struct {
	Name, Value string
}

// from is a variable, and the key of the credentials that it has its value from.
type from struct {
	name, key string
	optional  bool
	// check says whether a value is what tools expect there.
	check func(value string) (string, error)
}

// regionKey stands for the shoot's region, which is no part of credentials.
const regionKey = "\x00region"

// known are the clouds whose tools are known, with the keys that Gardener's extensions document.
var known = map[string][]from{
	"aws": {
		{name: "AWS_ACCESS_KEY_ID", key: "accessKeyID"}, {name: "AWS_SECRET_ACCESS_KEY", key: "secretAccessKey"},
		{name: "AWS_DEFAULT_REGION", key: regionKey},
	},
	"azure": {
		{name: "AZURE_CLIENT_ID", key: "clientID"}, {name: "AZURE_CLIENT_SECRET", key: "clientSecret"},
		{name: "AZURE_TENANT_ID", key: "tenantID"}, {name: "AZURE_SUBSCRIPTION_ID", key: "subscriptionID"},
	},
	"gcp": {
		{name: "GOOGLE_CREDENTIALS", key: "serviceaccount.json", check: serviceAccount},
		{name: "CLOUDSDK_COMPUTE_REGION", key: regionKey},
	},
	"openstack": {
		{name: "OS_AUTH_URL", key: "authURL", optional: true, check: httpsURL},
		{name: "OS_PROJECT_DOMAIN_NAME", key: "domainName"}, {name: "OS_USER_DOMAIN_NAME", key: "domainName"},
		{name: "OS_PROJECT_NAME", key: "tenantName"}, {name: "OS_USERNAME", key: "username", optional: true},
		{name: "OS_PASSWORD", key: "password", optional: true},
		{name: "OS_APPLICATION_CREDENTIAL_ID", key: "applicationCredentialID", optional: true},
		{name: "OS_APPLICATION_CREDENTIAL_SECRET", key: "applicationCredentialSecret", optional: true},
		{name: "OS_REGION_NAME", key: regionKey},
	},
	"alicloud": {
		{name: "ALIBABA_CLOUD_ACCESS_KEY_ID", key: "accessKeyID"},
		{name: "ALIBABA_CLOUD_ACCESS_KEY_SECRET", key: "accessKeySecret"},
		{name: "ALIBABA_CLOUD_REGION_ID", key: regionKey},
	},
	"hcloud":  {{name: "HCLOUD_TOKEN", key: "hcloudToken"}},
	"stackit": {{name: "STACKIT_PROJECT_ID", key: "project-id"}, {name: "STACKIT_REGION", key: regionKey}},
}

// Known says whether a type of provider needs no template.
func Known(providerType string) bool { return known[providerType] != nil }

// Names are the variables of a known type of provider.
func Names(providerType string) []string {
	names := make([]string, len(known[providerType]))
	for i, variable := range known[providerType] {
		names[i] = variable.name
	}
	return names
}

// Variables are those of a known type of provider.
func Variables(providerType, region string, credentials map[string][]byte) ([]Variable, error) {
	var variables []Variable
	for _, wanted := range known[providerType] {
		value := string(credentials[wanted.key])
		if wanted.key == regionKey {
			value = region
		}
		if value == "" && wanted.optional {
			continue
		}
		if value == "" {
			return nil, fmt.Errorf("credentials for provider %s have no %s", providerType, wanted.key)
		}
		if wanted.check != nil {
			var err error
			if value, err = wanted.check(value); err != nil {
				return nil, fmt.Errorf("%s of the credentials: %w", wanted.key, err)
			}
		}
		variables = append(variables, Variable{wanted.name, value})
	}
	return variables, nil
}

// Script sets the variables in a shell.
func Script(variables []Variable, sh shell.Shell) (string, error) {
	var b strings.Builder
	for _, variable := range variables {
		line, err := sh.Export(variable.Name, variable.Value)
		if err != nil {
			return "", err
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

// Unset removes variables from a shell.
func Unset(names []string, sh shell.Shell) (string, error) {
	var b strings.Builder
	for _, name := range names {
		line, err := sh.Unset(name)
		if err != nil {
			return "", err
		}
		b.WriteString(line)
	}
	return b.String(), nil
}

// googleAccount is the file of a service account. Google's tools also take files that say which program to run, or
// where to send which file, for a token; so no other fields get through.
type googleAccount struct {
	Type         string `json:"type"`
	ProjectID    string `json:"project_id"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"`
	ClientEmail  string `json:"client_email"`
	ClientID     string `json:"client_id,omitempty"`
	TokenURI     string `json:"token_uri"`
}

// googleTokens is where keys of service accounts are exchanged for tokens.
const googleTokens = "https://oauth2.googleapis.com/token"

var googleProject = regexp.MustCompile(`^(?:[a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]$`)

func serviceAccount(value string) (string, error) {
	var account googleAccount
	if err := json.Unmarshal([]byte(value), &account); err != nil {
		return "", fmt.Errorf("not the JSON of a service account: %w", err)
	}
	if account.Type != "service_account" {
		return "", fmt.Errorf("type: must be service_account, and is %q: tools of Google would run programs or read "+
			"files that others of its types name", account.Type)
	}
	if account.TokenURI != "" && account.TokenURI != googleTokens {
		return "", fmt.Errorf("token_uri: must be %s", googleTokens)
	}
	if !googleProject.MatchString(account.ProjectID) {
		return "", fmt.Errorf("project_id: %q is none", account.ProjectID)
	}
	account.TokenURI = googleTokens
	text, err := json.Marshal(account)
	return string(text), err
}

// httpsURL is an address that passwords may be sent to: one that is encrypted, and holds no names and passwords itself.
func httpsURL(value string) (string, error) {
	address, err := url.Parse(value)
	if err != nil {
		return "", fmt.Errorf("not a URL: %w", err)
	}
	if address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" ||
		address.Fragment != "" {
		return "", fmt.Errorf("%q must be https://HOST/PATH, with nothing else", address.Redacted())
	}
	return value, nil
}
