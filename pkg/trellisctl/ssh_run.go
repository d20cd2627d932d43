package trellisctl

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/crypto/ssh"
	corev1 "k8s.io/api/core/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/bastionaccess"
	"github.com/trellis-garden/trellis/pkg/trellisctl/sshconfig"
)

const (
	// sshProgram is what logs in.
	sshProgram = "ssh"
	// sshEnd is how long ssh has to end after an interrupt.
	sshEnd = 5 * time.Second
)

// ssh logs in to a node, runs a command there, or prints how to.
func (s *Session) ssh(command *cobra.Command, options sshOptions, name string, run []string) (err error) {
	ctx := command.Context()
	m, err := s.machines(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		return printNodes(command.OutOrStdout(), options.format, m)
	}
	node, err := m.node(name)
	if err != nil {
		return err
	}
	files, err := s.newSSHFiles(ctx, m.shoot, options)
	if err != nil {
		return err
	}
	made := false
	defer func() {
		// Without a bastion there is nothing for which its files would be kept, keys among them.
		if !options.keep || !made {
			err = errors.Join(err, files.remove())
		}
	}()
	ranges, err := s.ranges(options.cidrs)
	if err != nil {
		return err
	}
	bastion, err := s.ensureBastion(ctx, m.shoot, options.bastionName, files.publicKey, ranges)
	if err != nil {
		return err
	}
	made = true
	defer func() {
		if options.keep {
			tell(command)("Bastion %s/%s stays until an hour after it was last kept alive; its files are in %s",
				bastion.Namespace, bastion.Name, files.dir)
			return
		}
		err = errors.Join(err, s.deleteBastion(ctx, bastion))
	}()
	if err := s.awaitBastion(ctx, bastion, options.timeout, tell(command)); err != nil {
		return err
	}
	way, err := files.write(s.garden, bastion, m.nodes)
	if err != nil {
		return err
	}
	return s.useWay(command, options, way, node, run)
}

// useWay logs in where that is possible and wanted, and else prints how to. Meanwhile the bastion is kept alive.
func (s *Session) useWay(command *cobra.Command, options sshOptions, way *sshWay, node *corev1.Node,
	run []string) error {
	ctx, cancel := context.WithCancel(command.Context())
	var alive sync.WaitGroup
	defer alive.Wait()
	defer cancel()
	if !options.noKeepalive {
		alive.Go(func() { s.keepAlive(ctx, way.bastion, tell(command)) })
	}
	program, err := exec.LookPath(sshProgram)
	canRun := err == nil && (len(run) > 0 || terminalOf(command.InOrStdin()) != nil)
	if canRun && options.format.value == "" && !options.noKeepalive {
		return runSSH(ctx, command, program, way, node.Name, run)
	}
	if err != nil && len(run) > 0 {
		return fmt.Errorf("running the command needs the program ssh of OpenSSH: %w", err)
	}
	if err := way.print(command.OutOrStdout(), options.format, node); err != nil {
		return err
	}
	if options.noKeepalive {
		return nil
	}
	tell(command)("The bastion is kept alive until this command is interrupted.")
	<-ctx.Done()
	return nil
}

// runSSH runs ssh and ends as it ends.
func runSSH(ctx context.Context, command *cobra.Command, program string, way *sshWay, node string,
	run []string) error {
	cmd := exec.CommandContext(ctx, program, way.arguments(node, run)...)
	// What the machine writes is for the terminal itself, as with any shell.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = command.InOrStdin(), raw(command.OutOrStdout()), raw(command.ErrOrStderr())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = sshEnd
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil && exit.ExitCode() > 0 {
		return ExitError{exit.ExitCode()}
	}
	return err
}

// raw is the stream behind one that shows control characters.
func raw(stream io.Writer) io.Writer {
	if guarded, ok := stream.(visible); ok {
		return guarded.out
	}
	return stream
}

// sshFiles are the files that ssh reads, in a folder that nobody else may.
type sshFiles struct {
	dir string
	// publicKey is for the bastion, and bastionKey the file with the private one; empty where the SSH agent has it.
	publicKey, publicKeyFile, bastionKey string
	// machineKeys are the files with the keys to the machines.
	machineKeys []string
}

// newSSHFiles writes the keys.
func (s *Session) newSSHFiles(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	options sshOptions) (files *sshFiles, err error) {
	keys, err := s.machineKeys(ctx, shoot)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "trellisctl-ssh-")
	if err != nil {
		return nil, err
	}
	files = &sshFiles{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, files.remove())
		}
	}()
	for i, key := range keys {
		path := filepath.Join(dir, fmt.Sprintf("node-key-%d", i))
		if err := os.WriteFile(path, key, 0o600); err != nil {
			return nil, err
		}
		files.machineKeys = append(files.machineKeys, path)
	}
	if options.publicKeyFile != "" {
		return files, files.take(options.publicKeyFile, options.privateKeyFile)
	}
	return files, files.generate()
}

func (f *sshFiles) remove() error { return os.RemoveAll(f.dir) }

// take uses a pair of keys that the user has.
func (f *sshFiles) take(public, private string) error {
	content, err := os.ReadFile(public)
	if err != nil {
		return fmt.Errorf("--public-key-file: %w", err)
	}
	if _, _, _, _, err := ssh.ParseAuthorizedKey(content); err != nil {
		return fmt.Errorf("--public-key-file %s: no public key as in authorized_keys: %w", public, err)
	}
	if private == "" {
		candidate, isPublic := strings.CutSuffix(public, ".pub")
		if _, err := os.Stat(candidate); isPublic && err == nil {
			private = candidate
		}
	} else if _, err := os.Stat(private); err != nil {
		return fmt.Errorf("--private-key-file: %w", err)
	}
	f.publicKey, f.publicKeyFile, f.bastionKey = strings.TrimSpace(string(content)), public, private
	if private == "" {
		return nil
	}
	f.bastionKey, err = filepath.Abs(private)
	return err
}

// generate makes a pair of keys for this bastion alone.
func (f *sshFiles) generate() error {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "trellisctl")
	if err != nil {
		return err
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	f.publicKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(line)))
	f.bastionKey = filepath.Join(f.dir, "bastion-key")
	f.publicKeyFile = f.bastionKey + ".pub"
	return errors.Join(os.WriteFile(f.bastionKey, pem.EncodeToMemory(block), 0o600),
		os.WriteFile(f.publicKeyFile, []byte(f.publicKey+"\n"), 0o600))
}

// sshWay is how the machines are reached now.
type sshWay struct {
	sshconfig.Way
	bastion *operationsv1alpha1.Bastion
	files   *sshFiles
	nodes   []corev1.Node
	// config is the file with the configuration.
	config string
}

// write writes what ssh has to know of the bastion and the machines. Of machines without an address nothing is said.
func (f *sshFiles) write(garden *Garden, bastion *operationsv1alpha1.Bastion, nodes []corev1.Node) (*sshWay, error) {
	address, port := garden.Bastions.to(hostOf(bastion))
	way := &sshWay{bastion: bastion, files: f, nodes: nodes, config: filepath.Join(f.dir, "config")}
	way.Way = sshconfig.Way{
		User: bastionaccess.User, KnownHostsFile: filepath.Join(f.dir, "known_hosts"),
		Bastion: sshconfig.Host{Name: bastion.Name, Address: address, Port: port, Keys: bastion.Status.HostKeys},
	}
	if f.bastionKey != "" {
		way.Bastion.Identities = []string{f.bastionKey}
	}
	for i := range nodes {
		if address := addressOf(&nodes[i]); address != "" {
			way.Nodes = append(way.Nodes, sshconfig.Host{
				Name: nodes[i].Name, Address: address, Identities: f.machineKeys,
				Keys: strings.FieldsFunc(nodes[i].Annotations[gardencorev1beta1.AnnotationNodeSSHHostKeys],
					func(r rune) bool { return r == '\n' }),
			})
		}
	}
	config, errConfig := way.Config()
	hosts, errHosts := way.KnownHosts()
	if err := errors.Join(errConfig, errHosts); err != nil {
		return nil, err
	}
	return way, errors.Join(os.WriteFile(way.config, []byte(config), 0o600),
		os.WriteFile(way.KnownHostsFile, []byte(hosts), 0o600))
}

// arguments are those of ssh.
func (w *sshWay) arguments(node string, run []string) []string {
	arguments := []string{"-F", w.config, node}
	if len(run) > 0 {
		arguments = append(append(arguments, "--"), run...)
	}
	return arguments
}

// printedWay is what programs read.
type printedWay struct {
	Bastion             printedBastion `json:"bastion"`
	NodeHostname        string         `json:"nodeHostname"`
	NodePrivateKeyFiles []string       `json:"nodePrivateKeyFiles"`
	Nodes               []nodeWay      `json:"nodes"`
	User                string         `json:"user"`
	ConfigFile          string         `json:"configFile"`
	Command             []string       `json:"command"`
}

type printedBastion struct {
	Name                string   `json:"name"`
	Namespace           string   `json:"namespace"`
	PreferredAddress    string   `json:"preferredAddress"`
	Port                uint16   `json:"port"`
	PublicKeyFile       string   `json:"publicKeyFile"`
	PrivateKeyFile      string   `json:"privateKeyFile,omitempty"`
	UserKnownHostsFiles []string `json:"userKnownHostsFiles"`
}

// print says how to log in.
func (w *sshWay) print(out io.Writer, format formatFlag, node *corev1.Node) error {
	if !format.isDocument() {
		_, err := fmt.Fprintf(out, "Log in with: %s %s\n", sshProgram, strings.Join(w.arguments(node.Name, nil), " "))
		return err
	}
	port := w.Bastion.Port
	if port == 0 {
		port = 22
	}
	return format.print(out, printedWay{
		Bastion: printedBastion{
			Name: w.bastion.Name, Namespace: w.bastion.Namespace, PreferredAddress: w.Bastion.Address, Port: port,
			PublicKeyFile: w.files.publicKeyFile, PrivateKeyFile: w.files.bastionKey,
			UserKnownHostsFiles: []string{w.KnownHostsFile},
		},
		NodeHostname: addressOf(node), NodePrivateKeyFiles: w.files.machineKeys, Nodes: waysOf(w.nodes), User: w.User,
		ConfigFile: w.config, Command: append([]string{sshProgram}, w.arguments(node.Name, nil)...),
	})
}
