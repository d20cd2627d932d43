package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/trellis-garden/trellis/pkg/etcd/status"
	"github.com/trellis-garden/trellis/test/ports"
)

// restoreQuota is the limit of the databases, the highest that upstream advises.
const restoreQuota = "8589934592"

// etcdProcess is an etcd-steward, or an etcd of upstream, that serves.
type etcdProcess struct {
	command *exec.Cmd
	log     string
	exited  chan struct{}
	client  *clientv3.Client
	// health is the address of the steward's probes; empty for an etcd of upstream.
	health string
	// took is how long it was from its start until it served.
	took time.Duration
}

// address returns one of the loopback address that nobody uses.
func address() (string, error) {
	port, err := ports.Take()
	return "127.0.0.1:" + strconv.Itoa(port), err
}

// startSteward starts an etcd-steward on the data in a folder, and waits until it serves.
func (b *restoreBench) startSteward(ctx context.Context, folder string, arguments ...string) (*etcdProcess, error) {
	clients, errClients := address()
	peers, errPeers := address()
	health, errHealth := address()
	if err := errors.Join(errClients, errPeers, errHealth); err != nil {
		return nil, err
	}
	return b.start(ctx, clients, health, b.steward, append([]string{
		"--data-dir=" + b.path(folder), "--listen-client-urls=http://" + clients, "--listen-peer-urls=http://" + peers,
		"--health-address=" + health, "--quota-backend-bytes=" + restoreQuota,
	}, arguments...)...)
}

// startPeer starts an etcd of upstream on the data in a folder, and waits until it serves.
func (b *restoreBench) startPeer(ctx context.Context, folder string) (*etcdProcess, error) {
	clients, errClients := address()
	peers, errPeers := address()
	if err := errors.Join(errClients, errPeers); err != nil {
		return nil, err
	}
	return b.start(ctx, clients, "", b.etcd, "--data-dir="+b.path(folder), "--listen-client-urls=http://"+clients,
		"--advertise-client-urls=http://"+clients, "--listen-peer-urls=http://"+peers, "--log-level=warn",
		"--quota-backend-bytes="+restoreQuota)
}

func (b *restoreBench) start(ctx context.Context, clients, health, program string,
	arguments ...string) (*etcdProcess, error) {
	p := &etcdProcess{
		command: exec.CommandContext(ctx, program, arguments...), exited: make(chan struct{}), health: health,
		log: b.path(filepath.Base(program) + ".log"),
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.command.Stdout, p.command.Stderr = log, log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	begin := time.Now()
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	go func() { _ = p.command.Wait(); close(p.exited) }()
	if err := p.wait(ctx, "it to serve", func(ctx context.Context) error {
		return p.serves(ctx, clients, b.data.keys)
	}); err != nil {
		p.kill()
		return nil, err
	}
	p.took = time.Since(begin)
	return p, nil
}

// serves tells why an etcd does not yet answer with all keys.
func (p *etcdProcess) serves(ctx context.Context, clients string, keys int) error {
	if p.health != "" {
		if _, err := p.ask(ctx, "/readyz"); err != nil {
			return err
		}
	}
	if p.client == nil {
		// A client that is refused tries again only after a second or more, which would be measured then.
		if err := listens(ctx, clients); err != nil {
			return err
		}
		var err error
		p.client, err = clientv3.New(clientv3.Config{Endpoints: []string{"http://" + clients}, Logger: zap.NewNop()})
		if err != nil {
			return err
		}
	}
	return p.countKeys(ctx, keys)
}

func listens(ctx context.Context, address string) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return connection.Close()
}

// ask asks a steward at its address for probes.
func (p *etcdProcess) ask(ctx context.Context, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+path, nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, body)
	}
	return body, err
}

// wait tries again and again, until that succeeds or the process ends.
func (p *etcdProcess) wait(ctx context.Context, what string, try func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			text, errLog := os.ReadFile(p.log)
			return errors.Join(fmt.Errorf("%s ended, waiting for %s; its log ends: %s", p.command.Path, what,
				text[max(0, len(text)-4000):]), errLog)
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, errors.Join(ctx.Err(), err))
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// waitForStatus waits until a steward tells what is wanted of its store.
func (p *etcdProcess) waitForStatus(ctx context.Context, what string, told func(*status.Store) bool) error {
	return p.wait(ctx, what, func(ctx context.Context) error {
		body, err := p.ask(ctx, status.Path)
		if err != nil {
			return err
		}
		var s status.Status
		if err := json.Unmarshal(body, &s); err != nil {
			return err
		}
		if s.Store == nil || !told(s.Store) {
			return fmt.Errorf("not told of yet: %s", body)
		}
		return nil
	})
}

// waitForFull waits until there is a full snapshot in the store.
func (p *etcdProcess) waitForFull(ctx context.Context) error {
	return p.waitForStatus(ctx, "a full snapshot", func(s *status.Store) bool { return !s.Full.Succeeded.IsZero() })
}

// waitForVerification waits until the backups were verified, and returns the seconds that it took.
func (p *etcdProcess) waitForVerification(ctx context.Context) (seconds float64, err error) {
	err = p.waitForStatus(ctx, "a verification of the backups", func(s *status.Store) bool {
		seconds = s.Verification.Seconds
		return !s.Verification.Succeeded.IsZero()
	})
	return seconds, err
}

func (p *etcdProcess) disconnect() {
	if p.client != nil {
		_ = p.client.Close()
	}
}

// kill ends the process as a crash does.
func (p *etcdProcess) kill() {
	p.disconnect()
	_ = p.command.Process.Kill()
	<-p.exited
}

// stop ends it in order.
func (p *etcdProcess) stop() error {
	p.disconnect()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	<-p.exited
	if code := p.command.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %d; see %s", p.command.Path, code, p.log)
	}
	return nil
}

// peakMemory is what the process, which has ended, had resident at most, in bytes.
func (p *etcdProcess) peakMemory() int64 { return maxResident(p.command) }

// maxResident is at least what this process itself has, of which the kernel counts a child's beginning.
func maxResident(ended *exec.Cmd) int64 {
	usage, ok := ended.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	return usage.Maxrss << 10
}

// databaseSize is that of the file, in bytes.
func (p *etcdProcess) databaseSize(ctx context.Context) (int64, error) {
	response, err := p.client.Status(ctx, p.client.Endpoints()[0])
	if err != nil {
		return 0, err
	}
	return response.DbSize, nil
}

// saveSnapshot writes a snapshot as upstream's etcdctl does.
func (p *etcdProcess) saveSnapshot(ctx context.Context, path string) error {
	response, err := p.client.SnapshotWithVersion(ctx)
	if err != nil {
		return err
	}
	defer response.Snapshot.Close()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, response.Snapshot)
	return errors.Join(err, file.Close())
}
