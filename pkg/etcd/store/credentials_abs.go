package store

import "fmt"

// ABSCredentials are what requests to Azure Blob Storage are signed with.
type ABSCredentials struct {
	StorageAccount string
	// StorageKey is a key of the account, in base64.
	StorageKey string
}

// Keys of a Secret for Azure Blob Storage, as they are published for gardener.
const (
	storageAccountKey = "storageAccount"
	storageKeyKey     = "storageKey"
	domainKey         = "domain"
)

// ABSCredentialsIn returns a function that reads credentials from a mounted Secret with the keys storageAccount and
// storageKey, anew whenever it is called.
func ABSCredentialsIn(dir string) func() (ABSCredentials, error) {
	return func() (ABSCredentials, error) {
		var credentials ABSCredentials
		err := readSecret(dir, map[string]*string{
			storageAccountKey: &credentials.StorageAccount, storageKeyKey: &credentials.StorageKey,
		}, nil)
		if err != nil {
			return ABSCredentials{}, fmt.Errorf("reading credentials of Azure in %s: %w", dir, err)
		}
		return credentials, nil
	}
}

// ABSOptionsIn reads where a store is from a mounted Secret with the keys domain and trustedCaCert, both optional.
// Credentials are read from it whenever they are used. The bucket is for the caller to set.
func ABSOptionsIn(dir string) (ABSOptions, error) {
	options := ABSOptions{Credentials: ABSCredentialsIn(dir)}
	var ca string
	if err := readSecret(dir, nil, map[string]*string{domainKey: &options.Domain, caKey: &ca}); err != nil {
		return ABSOptions{}, fmt.Errorf("reading settings of Azure in %s: %w", dir, err)
	}
	options.CA = []byte(ca)
	return options, nil
}
