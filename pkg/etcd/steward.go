package etcd

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
)

const (
	clusterToken = "etcd-cluster"
	// snapshotCount and catchUpEntries bound the history that raft keeps in memory, and the write-ahead log, which
	// holds up to twice as many requests of up to 1.5 MiB; a single member needs little.
	snapshotCount  = 500
	catchUpEntries = 500
	// walFiles is how many files of the log are kept; those that are needed are kept in any case.
	walFiles = 1
	// A member without peers sends no heartbeats, so ticks may be rare; it elects itself within the election time.
	tickMilliseconds, electionMilliseconds = 200, 1000
	// Members with peers keep what etcd does by default. A member that was away for a while gets the entries since then
	// instead of the whole database, and one that gets that can catch up with what is written meanwhile.
	peersSnapshotCount, peersCatchUpEntries = 10000, 5000
	// Peers send heartbeats each tick: ten may be lost or late, by a slow disk, a busy processor or between zones,
	// until another leader is elected. Twice etcd's defaults: idle members are woken half as often, and what is only
	// slow has twice the time. An election ends within memberPace.patience.
	peersTickMilliseconds, peersElectionMilliseconds = 200, 2000
	// startTimeout bounds how long etcd may take to elect itself and replay its log.
	startTimeout = 10 * time.Minute
)

// Steward runs one etcd member.
type Steward struct {
	options Options
	log     *zap.Logger
	health  *health
	etcd    *embed.Etcd
	client  *clientv3.Client
	// clients are served by it; nil without clients. certificates are what they are served with; nil without TLS.
	clients      *clientServer
	certificates *certificates
	measure      measureFn
	// backups in the store; nil without one.
	backups *backups
	// snapshots is held by whoever takes or deletes local snapshots.
	snapshots sync.Mutex
	// said is what the log was told of last, by subject.
	said map[string]string
	// told and recoveries are what the status tells.
	told        *told
	recoveries  *recoveries
	compactions compactions

	memberPace memberPace
	// single says that etcd is started without other members; they may join it while it serves.
	single bool
	// joining are the members of the cluster that this one joins; empty where it has data.
	joining string
	// leaderless is since when there is no leader.
	leaderless leaderless
	// errands are what others have maintenance do in its turn; fragmented says that a compaction has freed space.
	errands    chan func()
	fragmented atomic.Bool
	// withoutClients says that etcd is started for the steward only.
	withoutClients bool
	// gate keeps clients away until the data was compared with that of other members; differing is sent why it is to be
	// given up for theirs.
	gate      gate
	differing chan error
	// left is sent to when the others turn out to go on without this member, whose etcd runs.
	left chan struct{}
	// onStep is called at each step of restoring a point in time; nil but in tests.
	onStep func(step string)
}

// New returns a steward; Run does the work.
func New(options Options, log *zap.Logger) *Steward {
	s := &Steward{
		options: options, log: log, health: newHealth(), measure: measure, said: map[string]string{}, told: newTold(),
		recoveries: newRecoveries(options.DataDir, log), memberPace: newMemberPace(), errands: make(chan func()),
		differing: make(chan error, 1), left: make(chan struct{}), single: options.startsSingle(),
	}
	s.health.status = s.status
	s.backups = newBackups(options, log, func(path string) (volume, error) { return s.measure(path) })
	if s.backups != nil {
		s.backups.compare = s.compareWithBackup
	}
	return s
}

// Run verifies and, where needed, restores the data, serves until ctx is done, then stops etcd in order. It returns
// an error when etcd cannot start or ends by itself.
func (s *Steward) Run(ctx context.Context) error {
	if err := errors.Join(s.options.Validate(), s.options.checkAuthorities()); err != nil {
		return err
	}
	if err := s.readCertificates(); err != nil {
		return err
	}
	if s.options.HealthAddress != "" {
		// Probes are answered until the very end, also while ctx is done and etcd stops.
		probes, cancel := context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		if err := s.health.listen(probes, s.options.HealthAddress); err != nil {
			return err
		}
	}
	if err := s.prepare(ctx); err != nil {
		return err
	}
	for {
		err := s.runEtcd(ctx)
		if !errors.Is(err, errLeftBehind) || ctx.Err() != nil {
			return err
		}
		if err := s.prepareLeftBehind(ctx, err); err != nil {
			return err
		}
	}
}

// runEtcd has etcd serve data that is fit for that, until ctx is done. One of several members may be left behind by the
// others (errLeftBehind).
func (s *Steward) runEtcd(ctx context.Context) error {
	if err := s.startCompared(ctx); err != nil {
		return err
	}
	if s.alone() {
		if err := s.replaceStaleData(ctx); err != nil {
			return errors.Join(err, s.stop())
		}
	}
	if err := s.restoreOnRequest(ctx); err != nil {
		return err
	}
	s.recoveries.end()
	s.health.ready = s.checkReady
	s.health.set(status.Serving)
	s.log.Info("etcd serves", zap.String("url", s.options.ListenClientURL))

	maintained, err := s.startMaintenance(ctx)
	if err == nil {
		err = s.serve(ctx)
	}
	s.health.set(status.Stopping)
	maintained()
	if err != nil {
		s.closeEtcd()
		return err
	}
	return s.stop()
}

// startMaintenance starts all that is done while etcd serves; it ends with ctx or when what it returns is called, which
// waits until it has ended.
func (s *Steward) startMaintenance(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	end = func() { cancel(); running.Wait() }
	running.Go(func() { s.maintain(ctx) })
	if s.certificates != nil {
		running.Go(func() { s.certificates.watch(ctx) })
	}
	if s.backups != nil && s.decidesAlone() {
		// Others get a vote only once the data is found to be no older than the backups. Until then that is noted.
		if _, err := s.newFollower(context.WithoutCancel(ctx)); err != nil {
			return end, err
		}
	}
	if s.options.hasPeers() {
		running.Go(func() { s.careForMembers(ctx) })
		running.Go(func() { s.compareAfterCompactions(ctx) })
		running.Go(func() { s.watchLeaderless(ctx) })
	}
	running.Go(func() { s.backUpWhileLeading(ctx) })
	return end, nil
}

// newFollower returns what saves the changes of the etcd that serves. Data of a member that decides alone may be older
// than its backups; what others agree on is not.
func (s *Steward) newFollower(ctx context.Context) (*follower, error) {
	started, err := currentRevision(ctx, s.client)
	if err != nil {
		return nil, fmt.Errorf("asking etcd for its revision: %w", err)
	}
	if s.decidesAlone() {
		if started, err = unconfirmed(s.options.DataDir, started); err != nil {
			return nil, err
		}
	}
	return &follower{backups: s.backups, client: s.client, snapshot: s.snapshotFile, started: started}, nil
}

func (s *Steward) serve(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.differing:
		return err
	case <-s.left:
		return errLeftBehind
	case err := <-s.etcd.Err():
		return fmt.Errorf("etcd ended: %w", err)
	case err := <-s.clients.ended:
		return fmt.Errorf("serving clients ended: %w", err)
	case <-s.etcd.Server.StopNotify():
		return s.endedByItself()
	}
}

// endedByItself is why etcd has: one of several members does when it is removed.
func (s *Steward) endedByItself() error {
	if s.options.hasPeers() {
		return fmt.Errorf("etcd ended by itself: %w", errLeftBehind)
	}
	return errors.New("etcd ended by itself; its log tells why")
}

func (s *Steward) start(ctx context.Context) error {
	s.health.set(status.Starting)
	config, err := s.config()
	if err != nil {
		return err
	}
	if err := s.startEtcd(ctx, config); err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	s.client = v3client.New(s.etcd.Server)
	return nil
}

// awaitReady waits until etcd serves. A single member that does not after some time never will. One of several waits
// for the others, as long as that takes, and tells what people can do.
func (s *Steward) awaitReady(ctx context.Context) error {
	patience := startTimeout
	if !s.single {
		s.health.set(status.AwaitingQuorum)
		patience = s.memberPace.quorum
	}
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	left := make(chan bool, 1)
	if !s.single && s.joining == "" {
		go func() { left <- s.watchOthers(watching) }()
	}
	for {
		select {
		case <-s.etcd.Server.ReadyNotify():
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.etcd.Err():
			return err
		case <-s.etcd.Server.StopNotify():
			return s.endedByItself()
		case isLeft := <-left:
			if isLeft {
				return errLeftBehind
			}
		case <-timeout.C:
			if s.single {
				return fmt.Errorf("not ready after %s", startTimeout)
			}
			s.log.Error("THERE IS NO QUORUM OF THE MEMBERS; " + quorumAdvice)
			timeout.Reset(repeatAfter)
		}
	}
}

// stop ends etcd in order and leaves the marker that spares the next start a verification.
func (s *Steward) stop() error {
	err := s.client.Close()
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	s.closeEtcd()
	marker := filepath.Join(s.options.DataDir, cleanMarker)
	return errors.Join(err, os.WriteFile(marker, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600),
		syncDir(s.options.DataDir))
}

// replaceStaleData restores what has most of the backups when that is ahead of the data: the volume was then rolled
// back or exchanged. The revision is compared after etcd has replayed its log, which the database file may be behind
// of.
func (s *Steward) replaceStaleData(ctx context.Context) error {
	found, err := s.findSoon(ctx)
	if err != nil || found.count() == 0 {
		return err
	}
	revision, err := currentRevision(ctx, s.client)
	if err != nil || revision >= found.restorable() || !s.alone() {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if newer, ok := s.ahead(ctx, found, revision); ok {
		finding := status.Recovery{
			Cause: status.DataStale, Revision: revision, KnownRevision: max(revision, found.last()),
			Reason: fmt.Sprintf("its revision is %d, that of backup %s is %d", revision, newer.name(), newer.Revision),
		}
		if err := s.replaceBy(newer, staleData, finding); err != nil {
			return err
		}
	}
	if err := os.Remove(filepath.Join(s.options.DataDir, cleanMarker)); err != nil {
		return err
	}
	return s.start(ctx)
}

func (s *Steward) checkReady() error {
	select {
	case <-s.etcd.Server.StopNotify():
		return errors.New("etcd has ended")
	default:
	}
	if s.etcd.Server.IsLearner() {
		return errors.New("this member is a learner: it has not caught up with the others yet")
	}
	if s.leaderless.lasts(s.etcd.Server.Leader() == 0, s.memberPace.patience, time.Now()) {
		return errors.New("etcd has no leader")
	}
	return nil
}

func (s *Steward) config() (*embed.Config, error) {
	o := s.options
	config := embed.NewConfig()
	config.Name = o.Name
	config.Dir = o.DataDir
	config.InitialClusterToken = clusterToken
	config.InitialCluster = o.Name + "=" + o.self().PeerURL
	config.QuotaBackendBytes = o.QuotaBackendBytes
	config.AutoCompactionMode = o.AutoCompactionMode
	config.AutoCompactionRetention = o.AutoCompactionRetention
	config.SnapshotCount = snapshotCount
	config.TickMs, config.ElectionMs = tickMilliseconds, electionMilliseconds
	config.MaxWalFiles = walFiles
	config.SnapshotCatchUpEntries = catchUpEntries
	// etcd sets this default only for its own command line; without it every request is logged as slow.
	config.WarningUnaryRequestDuration = embed.DefaultWarningUnaryRequestDuration
	config.EnableGRPCGateway = false
	// The steward serves clients itself.
	config.ListenClientUrls = nil
	if o.hasPeers() {
		s.configurePeers(config)
	}
	level, err := zapcore.ParseLevel(o.LogLevel)
	if err != nil {
		return nil, fmt.Errorf("--log-level: %w", err)
	}
	config.LogLevel = o.LogLevel
	config.ZapLoggerBuilder = embed.NewZapLoggerBuilder(s.log.WithOptions(zap.IncreaseLevel(level)))
	for target, text := range map[*[]url.URL]string{
		&config.AdvertiseClientUrls: o.advertised(),
		&config.ListenPeerUrls:      o.ListenPeerURL,
		&config.AdvertisePeerUrls:   o.self().PeerURL,
	} {
		parsed, err := url.Parse(text)
		if err != nil {
			return nil, err
		}
		*target = []url.URL{*parsed}
	}
	return config, nil
}

// configurePeers sets what a member that has others, or may get them, has otherwise than one that has none. What it
// keeps for others, and how often it tells them that it is there, is as without them until it is started beside them.
func (s *Steward) configurePeers(config *embed.Config) {
	if !s.single {
		config.SnapshotCount, config.SnapshotCatchUpEntries = peersSnapshotCount, peersCatchUpEntries
		config.TickMs, config.ElectionMs = peersTickMilliseconds, peersElectionMilliseconds
	}
	config.PeerTLSInfo = s.options.peerTLS()
	config.TlsMinVersion = "TLS1.2"
	if s.joining != "" {
		config.InitialCluster, config.ClusterState = s.joining, embed.ClusterStateFlagExisting
	}
}
