package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// S3Credentials are what requests to an S3 store are signed with.
type S3Credentials struct {
	AccessKeyID, SecretAccessKey string
	// SessionToken belongs to temporary credentials; empty for others.
	SessionToken string
}

// Keys of a Secret with S3Credentials, as gardener names them.
const (
	accessKeyIDKey     = "accessKeyID"
	secretAccessKeyKey = "secretAccessKey"
	sessionTokenKey    = "sessionToken"
)

// S3CredentialsIn returns a function that reads credentials from a mounted Secret with the keys accessKeyID,
// secretAccessKey and, optionally, sessionToken. It reads the files anew whenever it is called, so that they can be
// rotated while the store is used.
func S3CredentialsIn(dir string) func() (S3Credentials, error) {
	return func() (S3Credentials, error) {
		// The kubelet exchanges all files of a Secret at once, by this link; through it, all are of one version.
		current := dir
		if target, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
			current = target
		}
		var credentials S3Credentials
		var all []error
		for key, value := range map[string]*string{
			accessKeyIDKey:     &credentials.AccessKeyID,
			secretAccessKeyKey: &credentials.SecretAccessKey,
			sessionTokenKey:    &credentials.SessionToken,
		} {
			content, err := os.ReadFile(filepath.Join(current, key))
			if key == sessionTokenKey && errors.Is(err, fs.ErrNotExist) {
				continue
			}
			*value = strings.TrimSpace(string(content))
			if err == nil && *value == "" {
				err = fmt.Errorf("%s is empty", key)
			}
			all = append(all, err)
		}
		if err := errors.Join(all...); err != nil {
			return S3Credentials{}, fmt.Errorf("reading S3 credentials in %s: %w", dir, err)
		}
		return credentials, nil
	}
}
