package environment

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/trellis-garden/trellis/pkg/apiserver"
)

// Environment variables that make this program a process of an environment.
const (
	roleVariable      = "TRELLIS_ENVIRONMENT_PROCESS"
	argumentsVariable = "TRELLIS_ENVIRONMENT_ARGUMENTS"

	roleEtcd            = "etcd"
	roleGardenAPIServer = "garden-apiserver"
)

func roleEnvironment(role string, arguments []string) []string {
	return []string{roleVariable + "=" + role, argumentsVariable + "=" + strings.Join(arguments, "\n")}
}

// ServeProcess makes this program what it was started as by an environment with Options.OwnProcesses, and does not
// return then. It does nothing in a program that was started by somebody else.
func ServeProcess() {
	role := os.Getenv(roleVariable)
	if role == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, role, strings.Split(os.Getenv(argumentsVariable), "\n"))
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(ctx context.Context, role string, arguments []string) error {
	switch role {
	case roleEtcd:
		return serveEtcd(ctx, arguments)
	case roleGardenAPIServer:
		options, err := gardenAPIServerOptions(arguments)
		if err != nil {
			return err
		}
		return options.Run(ctx)
	}
	return fmt.Errorf("%s names no process of an environment", roleVariable)
}

func serveEtcd(ctx context.Context, arguments []string) error {
	config, err := etcdConfig(arguments)
	if err != nil {
		return err
	}
	etcd, err := startEtcdHere(ctx, config)
	if err != nil {
		return err
	}
	defer etcd.Close()
	select {
	case err := <-etcd.Err():
		return err
	case <-ctx.Done():
		return nil
	}
}

// etcdConfig takes the folder of the data and the URLs for clients and peers.
func etcdConfig(arguments []string) (*embed.Config, error) {
	if len(arguments) != 3 {
		return nil, fmt.Errorf("etcd takes a folder and two URLs, not %q", arguments)
	}
	clientURL, err := url.Parse(arguments[1])
	if err != nil {
		return nil, err
	}
	peerURL, err := url.Parse(arguments[2])
	if err != nil {
		return nil, err
	}
	config := embed.NewConfig()
	config.Dir = arguments[0]
	config.LogLevel = "fatal"
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{*clientURL}, []url.URL{*clientURL}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{*peerURL}, []url.URL{*peerURL}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	return config, nil
}

// startEtcdHere runs etcd in this process and waits until it is ready.
func startEtcdHere(ctx context.Context, config *embed.Config) (*embed.Etcd, error) {
	etcd, err := embed.StartEtcd(config)
	if err != nil {
		return nil, err
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err = <-etcd.Err():
	case <-ctx.Done():
		err = ctx.Err()
	}
	etcd.Close()
	return nil, err
}

// gardenAPIServerOptions parses arguments as the binary does.
func gardenAPIServerOptions(arguments []string) (*apiserver.Options, error) {
	options := apiserver.NewOptions()
	flags := pflag.NewFlagSet(roleGardenAPIServer, pflag.ContinueOnError)
	options.AddFlags(flags)
	return options, flags.Parse(arguments)
}

// Process is a process of an environment that can be killed and started again, with the same arguments and data.
type Process struct {
	name, path, log        string
	arguments, environment []string

	mutex   sync.Mutex
	command *exec.Cmd
	exited  chan struct{}
}

// Start starts the process, which must not be running.
func (p *Process) Start() error {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(p.path, p.arguments...)
	// The processes of many tests share a few processors: one that wakes a second thread for each event takes a fifth
	// more of them.
	command.Env = slices.Concat(os.Environ(), []string{"GOMAXPROCS=1"}, p.environment)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return fmt.Errorf("%s: %w", p.name, err)
	}
	exited := make(chan struct{})
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	p.command, p.exited = command, exited
	return nil
}

// Kill ends the process with SIGKILL, and returns when it is gone. It does nothing to one that has not been started.
func (p *Process) Kill() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.command == nil {
		return
	}
	_ = p.command.Process.Kill()
	<-p.exited
}

// Exited is closed when the process, which was started, is gone.
func (p *Process) Exited() <-chan struct{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.exited
}

// Log reads what the process has written so far.
func (p *Process) Log() (string, error) {
	text, err := os.ReadFile(p.log)
	return string(text), err
}

// PID returns the process id.
func (p *Process) PID() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.command.Process.Pid
}

// tail returns the end of the process' log for an error message; nothing of a nil process.
func (p *Process) tail() string {
	if p == nil {
		return ""
	}
	return "; end of its log:\n" + tail(p.log)
}
