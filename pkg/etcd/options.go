// Package etcd is etcd-steward: it runs one etcd member in process and looks after its data. Before etcd starts, the
// data directory is verified and, when it is lost, damaged or older than the newest backup, restored. While etcd runs,
// snapshots are taken and pruned, all changes are saved to a store if there is one, history is compacted near the
// quota, fragmented space is given back, and nothing takes the room on the volume that etcd itself needs. Clients are
// served by the steward, which takes over other certificates and authorities meanwhile.
//
// A member may be one of three (Options.Members), each with a steward of its own:
//
//   - The first one begins the cluster, or goes on with the data that it has as a single member. The others join it,
//     one after the other, as learners, which the leader promotes when they have caught up.
//   - While there are no others yet (Options.SingleMember), it waits for nobody, and its data is restored from backups
//     as that of an etcd without members is. It listens for peers nevertheless, so that it serves on while others join.
//     From then on it is one of several, whatever it was started as.
//   - Before its etcd starts, each asks the others, at their peer URLs, whether they have data, and those that serve
//     for what a quorum agrees on. What it then does, decide tells, and why that never makes a second cluster. No state
//     is kept for that beside the data itself.
//   - All data of a member that others have a quorum without can be lost: it has its identity removed, and joins anew.
//     Data is restored from backups only when none of the members has any. Without a quorum nothing is given up; the
//     log tells people what they can do.
//   - The stewards must all be started, in whatever order: StatefulSets need the parallel podManagementPolicy, and the
//     Service of the peer URLs publishNotReadyAddresses.
//   - Who has a certificate of the peers' authority is a member. The clients' authority must be another one. To ask and
//     join the others, a member is their client, with the certificate of its server.
//   - Members compare their data, before they serve and after compactions; compare.go tells how. One whose data differs
//     from that of a quorum joins anew. What a disk has changed is also found by backups, and then told: changed.go.
//   - Only the leader saves changes in the store, compacts history, and has the members defragment.
//   - A point in time is restored by the first one, alone; restoremembers.go tells how it comes to be that, and how the
//     others come back.
//
// Three things are not found out: the volume of a member that is set back to an earlier time while the cluster goes on,
// unless it was alone then; one set back to when it was alone, while no other member answers at its start; and that a
// single member, whose data is lost before it is started as one of several, has others none of which answers.
package etcd

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/spf13/pflag"

	"github.com/trellis-garden/trellis/pkg/etcd/request"
)

// DataLossPolicy says what happens when the data directory is damaged and no backup can replace it.
type DataLossPolicy string

// The policies.
const (
	// Fail refuses to start, so that a person can look at the data.
	Fail DataLossPolicy = "fail"
	// StartEmpty keeps the damaged data aside and starts with none; right for events only.
	StartEmpty DataLossPolicy = "start-empty"
)

// Options of a steward. DefaultOptions gives the defaults.
type Options struct {
	// Name of the member.
	Name string
	// DataDir is etcd's data directory.
	DataDir string
	// ListenClientURL is where clients are served; AdvertiseClientURL what they are told (default the same).
	ListenClientURL    string
	AdvertiseClientURL string
	// ListenPeerURL is where peers are served. Without Members there are none, so it stays on loopback.
	ListenPeerURL string
	// Members are all members of the etcd, in the order of their ordinals; none for one that others never join. The
	// first one begins the cluster, or goes on with the data that it has as a single member; the others join it.
	Members []Member
	// SingleMember says that, of Members, there is only the first one yet.
	SingleMember bool
	// PeerCertFile, PeerKeyFile and PeerTrustedCAFile secure the peer URLs. Whoever has a certificate of that authority
	// is taken for a member, so it must be another one than that of clients.
	PeerCertFile      string
	PeerKeyFile       string
	PeerTrustedCAFile string
	// CertFile, KeyFile and TrustedCAFile secure the client URL; with TrustedCAFile, clients must present a
	// certificate. Other contents are taken over while clients are served.
	CertFile      string
	KeyFile       string
	TrustedCAFile string
	// HealthAddress serves /livez, /readyz, /status and /metrics over plain HTTP.
	HealthAddress string

	// BackupDir holds snapshots; empty turns backups off.
	BackupDir string
	// SnapshotPeriod is the time between full snapshots, in the backup directory and in the store; none is taken when
	// nothing has changed.
	SnapshotPeriod time.Duration
	// SnapshotRetention is how many full snapshots are kept, in each of them unless the store has a number of its own.
	SnapshotRetention int
	// OnDataLoss says what to do with damaged data that no backup can replace.
	OnDataLoss DataLossPolicy

	// Store is where all changes are kept besides, so that the loss of the volume loses little.
	Store StoreOptions
	// Restore is the point in time whose state is restored from the store, once.
	Restore request.Restore

	// QuotaBackendBytes limits the size of the database.
	QuotaBackendBytes int64
	// AutoCompactionMode and AutoCompactionRetention are etcd's. kube-apiserver compacts by itself; this is the net
	// below it.
	AutoCompactionMode      string
	AutoCompactionRetention string
	// DefragmentationPeriod is how often fragmentation is looked at; 0 turns it off.
	DefragmentationPeriod time.Duration
	// LogLevel of etcd: debug, info, warn or error.
	LogLevel string
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		Name:                    "etcd",
		DataDir:                 "/var/etcd/data",
		ListenClientURL:         "http://127.0.0.1:2379",
		ListenPeerURL:           "http://127.0.0.1:2380",
		HealthAddress:           ":8080",
		SnapshotPeriod:          time.Hour,
		SnapshotRetention:       24,
		OnDataLoss:              Fail,
		Store:                   StoreOptions{DeltaSnapshotPeriod: time.Minute, VerifyPeriod: 24 * time.Hour},
		QuotaBackendBytes:       8 << 30,
		AutoCompactionMode:      "periodic",
		AutoCompactionRetention: "30m",
		DefragmentationPeriod:   12 * time.Hour,
		LogLevel:                "warn",
	}
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Name, "name", o.Name, "name of the member")
	flags.StringVar(&o.DataDir, "data-dir", o.DataDir, "data directory of etcd")
	flags.StringVar(&o.ListenClientURL, "listen-client-urls", o.ListenClientURL, "URL to serve clients on")
	flags.StringVar(&o.AdvertiseClientURL, "advertise-client-urls", o.AdvertiseClientURL,
		"URL that clients are told (default: the one that is listened on)")
	flags.StringVar(&o.ListenPeerURL, "listen-peer-urls", o.ListenPeerURL,
		"URL to serve peers on; there are none without --members")
	flags.Var((*memberList)(&o.Members), "members",
		"all members with their peer URLs, in the order of their ordinals; empty: no other ever joins this one")
	flags.BoolVar(&o.SingleMember, "single-member", o.SingleMember,
		"of --members, there is only this one yet; the others may join it while it serves")
	flags.StringVar(&o.PeerCertFile, "peer-cert-file", o.PeerCertFile,
		"certificate for peers, as server and client (PEM)")
	flags.StringVar(&o.PeerKeyFile, "peer-key-file", o.PeerKeyFile, "key of the certificate for peers (PEM)")
	flags.StringVar(&o.PeerTrustedCAFile, "peer-trusted-ca-file", o.PeerTrustedCAFile,
		"CA bundle that verifies peers; must not have the CA of clients")
	flags.StringVar(&o.CertFile, "cert-file", o.CertFile, "server certificate (PEM)")
	flags.StringVar(&o.KeyFile, "key-file", o.KeyFile, "key of the server certificate (PEM)")
	flags.StringVar(&o.TrustedCAFile, "trusted-ca-file", o.TrustedCAFile,
		"CA bundle; clients must present a certificate that it verifies")
	flags.StringVar(&o.HealthAddress, "health-address", o.HealthAddress,
		"address of /livez, /readyz, /status and /metrics (plain HTTP)")
	flags.StringVar(&o.BackupDir, "backup-dir", o.BackupDir,
		"directory for snapshots; empty: no backups, nothing can be restored")
	flags.DurationVar(&o.SnapshotPeriod, "snapshot-period", o.SnapshotPeriod, "time between full snapshots")
	flags.IntVar(&o.SnapshotRetention, "snapshot-retention", o.SnapshotRetention, "number of full snapshots to keep")
	flags.StringVar((*string)(&o.OnDataLoss), "on-data-loss", string(o.OnDataLoss),
		`what to do when the data is damaged and there is no backup: "fail" or "start-empty"`)
	o.Store.addFlags(flags)
	o.Restore.AddFlags(flags)
	flags.Int64Var(&o.QuotaBackendBytes, "quota-backend-bytes", o.QuotaBackendBytes, "limit of the database's size")
	flags.StringVar(&o.AutoCompactionMode, "auto-compaction-mode", o.AutoCompactionMode, `"periodic" or "revision"`)
	flags.StringVar(&o.AutoCompactionRetention, "auto-compaction-retention", o.AutoCompactionRetention,
		"history to keep: a duration or a number of revisions; 0 turns compaction off")
	flags.DurationVar(&o.DefragmentationPeriod, "defragmentation-period", o.DefragmentationPeriod,
		"how often to give back fragmented space; 0 turns it off")
	flags.StringVar(&o.LogLevel, "log-level", o.LogLevel, "log level of etcd: debug, info, warn, error")
}

// Validate returns every mistake in the options.
func (o *Options) Validate() error {
	var all []error
	if o.Name == "" {
		all = append(all, errors.New("--name must be set"))
	}
	if o.DataDir == "" {
		all = append(all, errors.New("--data-dir must be set"))
	}
	for flag, value := range map[string]string{
		"--listen-client-urls": o.ListenClientURL, "--advertise-client-urls": o.advertised(),
		"--listen-peer-urls": o.ListenPeerURL,
	} {
		if u, err := url.Parse(value); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			all = append(all, fmt.Errorf("%s: %q is not a URL such as https://0.0.0.0:2379", flag, value))
		}
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		all = append(all, errors.New("--cert-file and --key-file must be set together"))
	}
	if o.TrustedCAFile != "" && o.CertFile == "" {
		all = append(all, errors.New("--trusted-ca-file needs --cert-file and --key-file"))
	}
	all = append(all, o.validatePeers())
	if o.OnDataLoss != Fail && o.OnDataLoss != StartEmpty {
		all = append(all, fmt.Errorf("--on-data-loss: %q is neither %q nor %q", o.OnDataLoss, Fail, StartEmpty))
	}
	if o.QuotaBackendBytes <= 0 {
		all = append(all, errors.New("--quota-backend-bytes must be positive"))
	}
	all = append(all, o.Store.validate(), o.Restore.Validate())
	if o.Restore.ID != "" && o.Store.Provider == NoStore {
		all = append(all, errors.New("--restore-request needs --store-provider"))
	}
	if (o.BackupDir != "" || o.Store.Provider != "") && (o.SnapshotPeriod <= 0 || o.SnapshotRetention < 1) {
		all = append(all, errors.New("--snapshot-period must be positive and --snapshot-retention at least 1"))
	}
	return errors.Join(all...)
}

func (o *Options) advertised() string {
	if o.AdvertiseClientURL != "" {
		return o.AdvertiseClientURL
	}
	return o.ListenClientURL
}
