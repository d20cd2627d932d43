package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"k8s.io/klog/v2"

	"github.com/trellis-garden/trellis/pkg/etcd"
)

// The figures of an etcd of 1 GB.
const (
	figureRestore     = "etcd of 1 GB whose data is gone: restored from full snapshot and changes → serves"
	figureRestorePeer = "etcd of 1 GB: `etcdutl snapshot restore` of upstream, then `etcd` → serves"
	figureTrial       = "etcd of 1 GB: backups verified and restored on trial while it serves"
	figureKilled      = "etcd of 1 GB that was killed: data verified → serves"
)

const (
	restoreTimeout = time.Hour
	restoreFolder  = ".cache/bench/restore"
	// etcdPeerModule builds upstream's programs, of which the product needs nothing.
	etcdPeerModule = "test/bench/etcd"
	// usualMegabytes is the size of the database whose figures are recorded.
	usualMegabytes = 1000
)

type restoreSettings struct{ megabytes int }

func (s *restoreSettings) addFlags(flags *flag.FlagSet) {
	flags.IntVar(&s.megabytes, "restore-megabytes", usualMegabytes,
		"restore: size of the database; figures of others than the default are printed and not recorded")
}

// restoreBench are etcds whose data is lost, each in a process of its own.
type restoreBench struct {
	settings restoreSettings
	// steward, etcd and etcdutl are programs.
	steward, etcd, etcdutl string
	folder                 string
	data                   dataset
	// full and stored are the sizes of the full snapshot in etcd and of all backups in the store, in bytes.
	full, stored int64
	found        []measurement
}

// measureRestore has etcd-steward restore a database from a store, and upstream's programs the same from a snapshot.
func measureRestore(ctx context.Context, s restoreSettings) (_ []measurement, err error) {
	if s.megabytes < 1 {
		return nil, errors.New("--restore-megabytes must be positive")
	}
	ctx, cancel := context.WithTimeout(ctx, restoreTimeout)
	defer cancel()
	// What clients tell klog of connections are warnings whenever an etcd starts or ends.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	b := &restoreBench{settings: s}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	if b.folder, err = filepath.Abs(restoreFolder); err != nil {
		return nil, err
	}
	if err := errors.Join(os.RemoveAll(b.folder), os.MkdirAll(b.path(storeFolder), 0o700)); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"writing", b.fill},
		{"saving backups", b.backUp},
		{"verifying", b.measureVerification},
		{"restoring", b.measureRestores},
		{"restoring with upstream's programs", b.measurePeer},
	} {
		begin := time.Now()
		if err := step.do(ctx); err != nil {
			return nil, fmt.Errorf("%s: %w", step.what, err)
		}
		fmt.Printf("  %s took %.1fs\n", step.what, time.Since(begin).Seconds())
	}
	if s.megabytes != usualMegabytes {
		return nil, nil
	}
	return b.found, nil
}

// build builds the programs of both sides.
func (b *restoreBench) build(ctx context.Context) error {
	peers, err := buildPeer(ctx, etcdPeerModule, "go.etcd.io/etcd/etcdutl/v3", "go.etcd.io/etcd/server/v3")
	if err != nil {
		return err
	}
	b.etcdutl, b.etcd = filepath.Join(peers, "etcdutl"), filepath.Join(peers, "server")
	b.steward = filepath.Join(peers, "etcd-steward")
	steward := exec.CommandContext(ctx, "go", "build", "-o", b.steward, "./cmd/etcd-steward")
	if out, err := steward.CombinedOutput(); err != nil {
		return fmt.Errorf("building etcd-steward: %w: %s", err, out)
	}
	return nil
}

// What is in the folder of the measurement.
const (
	// sourceFolder is the data that is backed up, storeFolder where.
	sourceFolder, storeFolder = "source", "store"
	// lostFolder is data that is restored, from copyFolder of the store.
	lostFolder, copyFolder = "lost", "copy"
	// peerFolder is what etcdutl makes of peerSnapshot.
	peerFolder, peerSnapshot = "peer", "snapshot.db"
)

func (b *restoreBench) path(name string) string { return filepath.Join(b.folder, name) }

func (b *restoreBench) add(name string, seconds []float64, how string) {
	m := measurement{Name: name, Value: median(seconds), Unit: "s", How: how}
	fmt.Printf("  %s: %s s (of %.2f; %s)\n", name, number(m.Value), seconds, how)
	b.found = append(b.found, m)
}

// fill writes the data, without a store: all of it is to be in the full snapshot.
func (b *restoreBench) fill(ctx context.Context) error {
	p, err := b.startSteward(ctx, sourceFolder)
	if err != nil {
		return err
	}
	defer p.kill()
	if b.data, err = p.write(ctx, int64(b.settings.megabytes)*1_000_000); err != nil {
		return err
	}
	return p.stop()
}

// backUp saves a full snapshot, and then changes of a tenth of the keys. Upstream's snapshot has the same.
func (b *restoreBench) backUp(ctx context.Context) error {
	p, err := b.startSteward(ctx, sourceFolder, b.store(storeFolder)...)
	if err != nil {
		return err
	}
	defer p.kill()
	if err := p.waitForFull(ctx); err != nil {
		return err
	}
	if b.full, err = p.databaseSize(ctx); err != nil {
		return err
	}
	if err := p.change(ctx, &b.data); err != nil {
		return err
	}
	if err := p.saveSnapshot(ctx, b.path(peerSnapshot)); err != nil {
		return err
	}
	// An orderly stop saves the last changes.
	if err := p.stop(); err != nil {
		return err
	}
	b.stored, err = sizeOf(b.path(storeFolder))
	return err
}

// measureVerification has backups verified while etcd serves, and data after etcd was killed.
func (b *restoreBench) measureVerification(ctx context.Context) error {
	// A steward verifies for the first time after a 24th of the period.
	arguments := append(b.store(storeFolder), "--verify-period=24s")
	first, err := b.startSteward(ctx, sourceFolder, arguments...)
	if err != nil {
		return err
	}
	first.kill()
	var killed, trials []float64
	for range rounds {
		p, err := b.startSteward(ctx, sourceFolder, arguments...)
		if err != nil {
			return err
		}
		killed = append(killed, p.took.Seconds())
		trial, err := p.waitForVerification(ctx)
		p.kill()
		if err != nil {
			return err
		}
		trials = append(trials, trial)
	}
	b.add(figureTrial, trials, fmt.Sprintf("median of %d; the same full snapshot and changes are read twice, and made "+
		"a database once", rounds))
	b.add(figureKilled, killed, fmt.Sprintf("median of %d starts after SIGKILL, from the start of the process until "+
		"/readyz says so and all keys are counted; pages in the cache of the kernel", rounds))
	return nil
}

// measureRestores has data restored that is gone.
func (b *restoreBench) measureRestores(ctx context.Context) error {
	var took []float64
	var memory int64
	for range rounds {
		if err := b.linkStore(); err != nil {
			return err
		}
		p, err := b.startSteward(ctx, lostFolder, b.store(copyFolder)...)
		if err == nil {
			err = p.check(ctx, b.data)
			p.kill()
		}
		if err := errors.Join(err, os.RemoveAll(b.path(lostFolder)), os.RemoveAll(b.path(copyFolder))); err != nil {
			return err
		}
		took, memory = append(took, p.took.Seconds()), max(memory, p.peakMemory())
	}
	b.add(figureRestore, took, fmt.Sprintf("median of %d starts of etcd-steward without data, from the start of the "+
		"process until /readyz says so and all keys are counted. %s. At most %d MB resident, with pages of files that "+
		"are mapped", rounds, b.described(), memory/1e6))
	return nil
}

// described tells what is restored.
func (b *restoreBench) described() string {
	return fmt.Sprintf("A full snapshot of %d MB with %d keys, and changes of %d of them; both take %d MB in a "+
		"directory, and are in the cache of the kernel", b.full/1e6, b.data.keys, b.data.changed, b.stored/1e6)
}

// measurePeer has upstream's programs restore the same.
func (b *restoreBench) measurePeer(ctx context.Context) error {
	info, err := os.Stat(b.path(peerSnapshot))
	if err != nil {
		return err
	}
	var took []float64
	var memory int64
	for range rounds {
		seconds, peak, err := b.restoreWithPeer(ctx)
		if err := errors.Join(err, os.RemoveAll(b.path(peerFolder))); err != nil {
			return err
		}
		took, memory = append(took, seconds), max(memory, peak)
	}
	b.add(figureRestorePeer, took, fmt.Sprintf("median of %d in the same run, both v3.6.8, one after the other, until "+
		"all keys are counted. One snapshot of %d MB has the same keys and changes, and its hash is checked; nothing "+
		"has to be decompressed. At most %d MB resident", rounds, info.Size()/1e6, memory/1e6))
	return nil
}

// restoreWithPeer makes data of the snapshot, as clients of Kubernetes need it, and starts an etcd on it.
func (b *restoreBench) restoreWithPeer(ctx context.Context) (seconds float64, memory int64, err error) {
	begin := time.Now()
	restore := exec.CommandContext(ctx, b.etcdutl, "snapshot", "restore", b.path(peerSnapshot), "--data-dir",
		b.path(peerFolder), "--bump-revision", "1000000000", "--mark-compacted")
	if out, err := restore.CombinedOutput(); err != nil {
		return 0, 0, fmt.Errorf("etcdutl snapshot restore: %w: %s", err, out)
	}
	p, err := b.startPeer(ctx, peerFolder)
	if err != nil {
		return 0, 0, err
	}
	seconds = time.Since(begin).Seconds()
	err = p.check(ctx, b.data)
	p.kill()
	return seconds, max(maxResident(restore), p.peakMemory()), err
}

// store are the arguments of a steward that backs up to a folder.
func (b *restoreBench) store(folder string) []string {
	return []string{
		"--store-provider=" + string(etcd.LocalStore), "--store-bucket=" + b.path(folder),
		"--delta-snapshot-period=10s",
	}
}

// linkStore makes a store of the same objects. None of them is ever changed, only deleted.
func (b *restoreBench) linkStore() error {
	return filepath.WalkDir(b.path(storeFolder), func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(b.path(storeFolder), path)
		if err != nil {
			return err
		}
		target := filepath.Join(b.path(copyFolder), below)
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		return os.Link(path, target)
	})
}

// sizeOf adds up the files of a folder.
func sizeOf(folder string) (size int64, err error) {
	err = filepath.WalkDir(folder, func(_ string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	return size, err
}
