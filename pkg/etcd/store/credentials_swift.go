package store

import (
	"fmt"

	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
)

// SwiftCredentials are what Keystone issues tokens for: the password of a user, who acts for a project, or an
// application credential, which counts if both are there.
type SwiftCredentials struct {
	Username, Password string
	// DomainName is that of the user and the project, TenantName that of the project.
	DomainName, TenantName string
	// ApplicationCredentialName needs Username and DomainName, ApplicationCredentialID neither.
	ApplicationCredentialID, ApplicationCredentialName, ApplicationCredentialSecret string
}

// Keys of a Secret for Swift, as they are published for gardener.
const (
	authURLKey                     = "authURL"
	domainNameKey                  = "domainName"
	tenantNameKey                  = "tenantName"
	usernameKey                    = "username"
	passwordKey                    = "password"
	applicationCredentialIDKey     = "applicationCredentialID"
	applicationCredentialNameKey   = "applicationCredentialName"
	applicationCredentialSecretKey = "applicationCredentialSecret"
)

// SwiftCredentialsIn returns a function that reads credentials from a mounted Secret, anew whenever it is called: with
// the keys applicationCredentialSecret and applicationCredentialID, or applicationCredentialName, username and
// domainName; else with the keys username, password, domainName and tenantName.
func SwiftCredentialsIn(dir string) func() (SwiftCredentials, error) {
	return func() (SwiftCredentials, error) {
		var c SwiftCredentials
		err := readSecret(dir, nil, map[string]*string{
			usernameKey: &c.Username, passwordKey: &c.Password, domainNameKey: &c.DomainName,
			tenantNameKey: &c.TenantName, applicationCredentialIDKey: &c.ApplicationCredentialID,
			applicationCredentialNameKey:   &c.ApplicationCredentialName,
			applicationCredentialSecretKey: &c.ApplicationCredentialSecret,
		})
		if err == nil {
			err = c.validate()
		}
		if err != nil {
			return SwiftCredentials{}, fmt.Errorf("reading credentials of Swift in %s: %w", dir, err)
		}
		return c, nil
	}
}

func (c *SwiftCredentials) validate() error {
	switch {
	case c.ApplicationCredentialSecret == "" && c.Password == "":
		return fmt.Errorf("neither %s nor %s is set", applicationCredentialSecretKey, passwordKey)
	case c.ApplicationCredentialSecret == "":
		if c.Username == "" || c.DomainName == "" || c.TenantName == "" {
			return fmt.Errorf("with %s, one of %s, %s and %s is not set", passwordKey, usernameKey, domainNameKey,
				tenantNameKey)
		}
	case c.ApplicationCredentialID != "":
	case c.ApplicationCredentialName == "":
		return fmt.Errorf("with %s, neither %s nor %s is set", applicationCredentialSecretKey,
			applicationCredentialIDKey, applicationCredentialNameKey)
	case c.Username == "" || c.DomainName == "":
		return fmt.Errorf("with %s, %s or %s is not set", applicationCredentialNameKey, usernameKey, domainNameKey)
	}
	return nil
}

// auth is how Keystone is asked for a token.
func (c *SwiftCredentials) auth() *tokens.AuthOptions {
	if c.ApplicationCredentialSecret == "" {
		return &tokens.AuthOptions{
			Username: c.Username, Password: c.Password, DomainName: c.DomainName,
			Scope: tokens.Scope{ProjectName: c.TenantName, DomainName: c.DomainName},
		}
	}
	options := &tokens.AuthOptions{
		ApplicationCredentialID: c.ApplicationCredentialID, ApplicationCredentialSecret: c.ApplicationCredentialSecret,
	}
	if c.ApplicationCredentialID == "" {
		options.ApplicationCredentialName = c.ApplicationCredentialName
		options.Username, options.DomainName = c.Username, c.DomainName
	}
	return options
}

// SwiftOptionsIn reads where a store is from a mounted Secret with the keys authURL and, optionally, region and
// trustedCaCert. Credentials are read from it whenever they are used. The bucket is for the caller to set.
func SwiftOptionsIn(dir string) (SwiftOptions, error) {
	options := SwiftOptions{Credentials: SwiftCredentialsIn(dir)}
	var ca string
	err := readSecret(dir, map[string]*string{authURLKey: &options.AuthURL}, map[string]*string{
		regionKey: &options.Region, caKey: &ca,
	})
	if err != nil {
		return SwiftOptions{}, fmt.Errorf("reading settings of Swift in %s: %w", dir, err)
	}
	options.CA = []byte(ca)
	return options, nil
}
