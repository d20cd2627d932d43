package store

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"reflect"
	"strings"
	"testing"
)

func with(base map[string]string, changes ...string) map[string]string {
	result := maps.Clone(base)
	for i := 0; i < len(changes); i += 2 {
		if result[changes[i]] = changes[i+1]; changes[i+1] == "" {
			delete(result, changes[i])
		}
	}
	return result
}

func TestKeysOfAzure(t *testing.T) {
	whole := map[string]string{"storageAccount": "account\n", "storageKey": "a2V5"}
	for name, test := range map[string]struct {
		files  map[string]string
		domain string
		ca     string
		wrong  string
	}{
		"as published":    {files: with(whole, "domain", "blob.core.chinacloudapi.cn\n"), domain: "blob.core.chinacloudapi.cn"},
		"without domain":  {files: whole},
		"an own CA":       {files: with(whole, "trustedCaCert", "PEM"), ca: "PEM"},
		"without account": {files: with(whole, "storageAccount", ""), wrong: "storageAccount"},
		"without key":     {files: with(whole, "storageKey", ""), wrong: "storageKey"},
	} {
		dir := t.TempDir()
		write(t, dir, test.files)
		options, err := ABSOptionsIn(dir)
		if err != nil || options.Domain != test.domain || string(options.CA) != test.ca {
			t.Errorf("%s: got %+v, %v", name, options, err)
		}
		got, err := options.Credentials()
		if test.wrong != "" {
			if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("%s: got %v", name, err)
			}
		} else if err != nil || got != (ABSCredentials{StorageAccount: "account", StorageKey: "a2V5"}) {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

func TestKeysOfSwift(t *testing.T) {
	password := map[string]string{
		"authURL": "https://keystone.example.com/v3", "domainName": "d", "tenantName": "t", "username": "u",
		"password": "p",
	}
	application := map[string]string{
		"authURL": "https://keystone.example.com", "applicationCredentialID": "i", "applicationCredentialSecret": "s",
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  SwiftCredentials
		wrong string
	}{
		"a password": {
			files: with(password, "region", "here", "trustedCaCert", "PEM"),
			want:  SwiftCredentials{Username: "u", Password: "p", DomainName: "d", TenantName: "t"},
		},
		"an application credential": {
			files: application,
			want:  SwiftCredentials{ApplicationCredentialID: "i", ApplicationCredentialSecret: "s"},
		},
		"one by name": {
			files: with(application, "applicationCredentialID", "", "applicationCredentialName", "n", "username", "u",
				"domainName", "d"),
			want: SwiftCredentials{
				ApplicationCredentialName: "n", ApplicationCredentialSecret: "s", Username: "u", DomainName: "d",
			},
		},
		"without password":    {files: with(password, "password", ""), wrong: "password"},
		"without username":    {files: with(password, "username", ""), wrong: "username"},
		"without domain":      {files: with(password, "domainName", ""), wrong: "domainName"},
		"without tenant":      {files: with(password, "tenantName", ""), wrong: "tenantName"},
		"without secret":      {files: with(application, "applicationCredentialSecret", ""), wrong: "Secret"},
		"without id and name": {files: with(application, "applicationCredentialID", ""), wrong: "applicationCredentialID"},
		"by name without user": {
			files: with(application, "applicationCredentialID", "", "applicationCredentialName", "n"), wrong: "username",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, test.files)
			options, err := SwiftOptionsIn(dir)
			if err != nil || options.AuthURL != test.files["authURL"] || options.Region != test.files["region"] ||
				string(options.CA) != test.files["trustedCaCert"] {
				t.Errorf("got %+v, %v", options, err)
			}
			got, err := options.Credentials()
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) {
					t.Errorf("got %v", err)
				}
			} else if err != nil || got != test.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := SwiftOptionsIn(t.TempDir()); err == nil || !strings.Contains(err.Error(), "authURL") {
		t.Errorf("without authURL: %v", err)
	}
}

func TestKeysOfGCS(t *testing.T) {
	key, none := testKey(t), "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"
	account := func(changes ...string) string {
		text, err := json.Marshal(with(map[string]string{
			"type": "service_account", "client_email": "backups@example.com", "private_key": key,
			"private_key_id": "one", "project_id": "project", "token_uri": "https://tokens.example.com/token",
		}, changes...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for name, test := range map[string]struct {
		text  string
		want  string
		wrong string
	}{
		"as Google gives it out": {text: account(), want: "https://tokens.example.com/token"},
		"without token_uri":      {text: account("token_uri", ""), want: "https://oauth2.googleapis.com/token"},
		"tokens without TLS":     {text: account("token_uri", "http://tokens.example.com"), wrong: "token_uri"},
		"tokens of a file":       {text: account("token_uri", "file:///etc/passwd"), wrong: "token_uri"},
		"of a user":              {text: account("type", "authorized_user"), wrong: "service_account"},
		"without email":          {text: account("client_email", ""), wrong: "client_email"},
		"without key":            {text: account("private_key", ""), wrong: "private_key"},
		"a key that is none":     {text: account("private_key", none), wrong: "private_key"},
		"no JSON":                {text: key, wrong: "JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{
				"serviceaccount.json": test.text, "storageAPIEndpoint": "https://gcs.example.com/storage/v1/\n",
				"trustedCaCert": "PEM",
			})
			options, err := GCSOptionsIn(dir)
			if err != nil || options.Endpoint != "https://gcs.example.com/storage/v1/" || string(options.CA) != "PEM" {
				t.Errorf("got %+v, %v", options, err)
			}
			got, err := options.Credentials()
			if test.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), test.wrong) ||
					strings.Contains(err.Error(), key[40:60]) {
					t.Errorf("got %v", err)
				}
				return
			}
			want := GCSCredentials{
				ClientEmail: "backups@example.com", PrivateKey: key, PrivateKeyID: "one", TokenURI: test.want,
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if _, err := GCSCredentialsIn(t.TempDir())(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no Secret is mounted: got %v", err)
	}
}

func FuzzServiceAccount(f *testing.F) {
	f.Add(`{"type":"service_account","client_email":"a","private_key":"b"}`)
	f.Add(`{"type":"service_account","client_email":"a","token_uri":"https://a:b@c"}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := parseServiceAccount(text)
		if err == nil && (got.ClientEmail == "" || !strings.HasPrefix(strings.ToLower(got.TokenURI), "https:")) {
			t.Errorf("%q: got %+v", text, got)
		}
		if err != nil && len(err.Error()) > 100 {
			t.Errorf("%q: got %v", text, err)
		}
	})
}
