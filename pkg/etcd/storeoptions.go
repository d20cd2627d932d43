package etcd

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// StoreProvider is a kind of store.
type StoreProvider string

// The providers.
const (
	// NoStore keeps nothing beyond the snapshots in the backup directory.
	NoStore StoreProvider = ""
	// S3Store is a bucket of an S3 store.
	S3Store StoreProvider = "S3"
	// ABSStore is a container of Azure Blob Storage.
	ABSStore StoreProvider = "ABS"
	// GCSStore is a bucket of Google Cloud Storage.
	GCSStore StoreProvider = "GCS"
	// SwiftStore is a container of OpenStack Swift.
	SwiftStore StoreProvider = "Swift"
	// LocalStore is a directory.
	LocalStore StoreProvider = "Local"
)

// leastDeltaPeriod keeps the number of objects, and of requests that are paid for, within bounds.
const leastDeltaPeriod = 10 * time.Second

// StoreOptions say where full snapshots and all changes after them are kept, and how.
type StoreOptions struct {
	Provider StoreProvider
	// Bucket of the store, which must exist; for LocalStore the directory.
	Bucket string
	// Prefix of all names in the bucket, so that others can use it too.
	Prefix string
	// CredentialsDir is a mounted Secret. It is read anew whenever the store is used.
	CredentialsDir string
	// Claim is the number of the taking over by which etcd has these backups, higher than those before; 0 says that it
	// never was elsewhere. With a number, no data at all is never the first start.
	Claim int64
	// DeltaSnapshotPeriod is how often changes are saved, and so how much the loss of the volume costs.
	DeltaSnapshotPeriod time.Duration
	// SnapshotRetention is how many full snapshots are kept; 0: as many as in the backup directory.
	SnapshotRetention int
	// SnapshotRetentionAge is the age above which no full snapshot is kept, but for the newest; 0 sets no limit.
	SnapshotRetentionAge time.Duration
	// VerifyPeriod is how often the newest backups are verified and restored on trial; 0 turns it off.
	VerifyPeriod time.Duration
}

func (o *StoreOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar((*string)(&o.Provider), "store-provider", string(o.Provider),
		`store that keeps all changes beyond the volume: "S3", "ABS", "GCS", "Swift" or "Local"; empty: none`)
	flags.StringVar(&o.Bucket, "store-bucket", o.Bucket,
		"bucket of the store; a container for ABS and Swift, a directory for Local")
	flags.StringVar(&o.Prefix, "store-prefix", o.Prefix, "prefix of all names in the bucket")
	flags.StringVar(&o.CredentialsDir, "store-credentials-dir", o.CredentialsDir,
		"mounted Secret with the keys of the provider and encryptionKey; changes are taken up. "+
			"S3: accessKeyID, secretAccessKey, region, endpoint, s3ForcePathStyle, serverSideEncryption; "+
			"ABS: storageAccount, storageKey, domain; GCS: serviceaccount.json, storageAPIEndpoint; "+
			"Swift: authURL, region, domainName, tenantName, username, password, applicationCredentialID, "+
			"applicationCredentialName, applicationCredentialSecret; each: trustedCaCert")
	flags.Int64Var(&o.Claim, "store-claim", o.Claim,
		"etcd was elsewhere before, and takes over its backups: without data it begins with those in the store, and "+
			"not without; one with a lower number, or none, does not start any more")
	flags.DurationVar(&o.DeltaSnapshotPeriod, "delta-snapshot-period", o.DeltaSnapshotPeriod,
		"time between savings of changes to the store")
	flags.IntVar(&o.SnapshotRetention, "store-snapshot-retention", o.SnapshotRetention,
		"number of full snapshots to keep in the store; 0: that of --snapshot-retention")
	flags.DurationVar(&o.SnapshotRetentionAge, "snapshot-retention-age", o.SnapshotRetentionAge,
		"age above which full snapshots in the store are deleted, but for the newest; 0: no limit")
	flags.DurationVar(&o.VerifyPeriod, "verify-period", o.VerifyPeriod,
		"how often to verify the store's newest backups and to restore them on trial; 0 turns it off")
}

// validate names every flag that is wrong. Values that are never right are refused without a store as well, so that
// they are found before there is one.
func (o *StoreOptions) validate() error {
	switch o.Provider {
	case NoStore:
		return errors.Join(o.validateNone(), o.validateNumbers())
	case S3Store, ABSStore, GCSStore, SwiftStore, LocalStore:
		return errors.Join(o.validatePlace(), o.validateNumbers())
	}
	return fmt.Errorf("--store-provider: %q is none of %q, %q, %q, %q and %q", o.Provider, S3Store, ABSStore,
		GCSStore, SwiftStore, LocalStore)
}

// validatePlace checks where the store is.
func (o *StoreOptions) validatePlace() error {
	var all []error
	if o.Bucket == "" {
		all = append(all, errors.New("--store-bucket must be set with --store-provider"))
	}
	if o.Provider != LocalStore && o.CredentialsDir == "" {
		all = append(all, fmt.Errorf("--store-credentials-dir must be set for the provider %s", o.Provider))
	}
	parts := strings.Split(strings.Trim(o.Prefix, "/"), "/")
	wrong := func(part string) bool { return part == "" || part == "." || part == ".." }
	if o.Prefix != "" && slices.ContainsFunc(parts, wrong) {
		all = append(all, fmt.Errorf("--store-prefix: %q has a part that is empty, a dot or two", o.Prefix))
	}
	return errors.Join(all...)
}

func (o *StoreOptions) validateNumbers() error {
	var all []error
	if o.DeltaSnapshotPeriod < leastDeltaPeriod {
		all = append(all, fmt.Errorf("--delta-snapshot-period: %s is less than %s", o.DeltaSnapshotPeriod,
			leastDeltaPeriod))
	}
	if o.Claim < 0 {
		all = append(all, errors.New("--store-claim must not be negative"))
	}
	if o.SnapshotRetention < 0 {
		all = append(all, errors.New("--store-snapshot-retention must not be negative"))
	}
	if o.SnapshotRetentionAge < 0 {
		all = append(all, errors.New("--snapshot-retention-age must not be negative"))
	}
	if o.VerifyPeriod < 0 {
		all = append(all, errors.New("--verify-period must not be negative"))
	}
	return errors.Join(all...)
}

// described is where the store is, for errors.
func (o *StoreOptions) described() string {
	if o.Provider == NoStore {
		return ""
	}
	return fmt.Sprintf(" nor in the store %q below %q", o.Bucket, o.Prefix)
}

// validateNone refuses what would be without effect: whoever sets it believes in backups that there are not.
func (o *StoreOptions) validateNone() error {
	var all []error
	for flag, value := range map[string]string{
		"--store-bucket": o.Bucket, "--store-prefix": o.Prefix, "--store-credentials-dir": o.CredentialsDir,
	} {
		if value != "" {
			all = append(all, fmt.Errorf("%s needs --store-provider", flag))
		}
	}
	if o.Claim != 0 {
		all = append(all, errors.New("--store-claim needs --store-provider"))
	}
	return errors.Join(all...)
}
