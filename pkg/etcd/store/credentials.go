package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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

	regionKey           = "region"
	endpointKey         = "endpoint"
	pathStyleKey        = "s3ForcePathStyle"
	caKey               = "trustedCaCert"
	encryptionAtRestKey = "serverSideEncryption"
)

// S3CredentialsIn returns a function that reads credentials from a mounted Secret with the keys accessKeyID,
// secretAccessKey and, optionally, sessionToken. It reads the files anew whenever it is called, so that they can be
// rotated while the store is used.
func S3CredentialsIn(dir string) func() (S3Credentials, error) {
	return func() (S3Credentials, error) {
		var credentials S3Credentials
		err := readSecret(dir, map[string]*string{
			accessKeyIDKey: &credentials.AccessKeyID, secretAccessKeyKey: &credentials.SecretAccessKey,
		}, map[string]*string{sessionTokenKey: &credentials.SessionToken})
		if err != nil {
			return S3Credentials{}, fmt.Errorf("reading S3 credentials in %s: %w", dir, err)
		}
		return credentials, nil
	}
}

// readSecret reads values of keys of one version of a mounted Secret: keys that must have one, and others, whose values
// stay empty if there is none.
func readSecret(dir string, required, optional map[string]*string) error {
	current := SecretVersion(dir)
	var all []error
	for key, value := range required {
		content, err := os.ReadFile(filepath.Join(current, key))
		if *value = strings.TrimSpace(string(content)); err == nil && *value == "" {
			err = fmt.Errorf("%s is empty", key)
		}
		all = append(all, err)
	}
	for key, value := range optional {
		var err error
		*value, err = SecretValue(current, key)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// SecretVersion returns the directory that has all files of one version of a mounted Secret: the kubelet exchanges
// them at once, by a link.
func SecretVersion(dir string) string {
	if target, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		return target
	}
	return dir
}

// SecretValue returns the value of a key in such a directory, without surrounding space; empty if there is none.
func SecretValue(dir, key string) (string, error) {
	content, err := os.ReadFile(filepath.Join(dir, key))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(content)), err
}

// S3OptionsIn reads where a store is and how it is used from a mounted Secret with the keys region, endpoint,
// s3ForcePathStyle, trustedCaCert and serverSideEncryption, all optional beside a region or an endpoint. Credentials
// are read from it whenever they are used. The bucket is for the caller to set.
func S3OptionsIn(dir string) (S3Options, error) {
	options := S3Options{Credentials: S3CredentialsIn(dir)}
	var pathStyle, ca, encryption string
	all := []error{readSecret(dir, nil, map[string]*string{
		regionKey: &options.Region, endpointKey: &options.Endpoint, pathStyleKey: &pathStyle, caKey: &ca,
		encryptionAtRestKey: &encryption,
	})}
	if pathStyle != "" {
		var err error
		if options.PathStyle, err = strconv.ParseBool(pathStyle); err != nil {
			all = append(all, fmt.Errorf("%s is %q, it can be true or false", pathStyleKey, pathStyle))
		}
	}
	options.CA, options.Encryption = []byte(ca), Encryption(encryption)
	switch {
	case options.Endpoint != "":
	case options.Region != "":
		options.Endpoint = "https://s3." + options.Region + ".amazonaws.com"
	default:
		all = append(all, fmt.Errorf("neither %s nor %s is set", endpointKey, regionKey))
	}
	if err := errors.Join(all...); err != nil {
		return S3Options{}, fmt.Errorf("reading S3 settings in %s: %w", dir, err)
	}
	return options, nil
}
