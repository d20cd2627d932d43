// Package terraform runs Terraform (or OpenTofu) for an extension's Infrastructure controller. Configuration and state
// live in Secrets of the seed beside the extension object: the process may be killed at any point, and another one goes
// on from there. No network is used: providers come from a folder of the image.
package terraform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/hashicorp/terraform-exec/tfexec"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// Binary is where images have terraform, or an OpenTofu under that name.
	Binary = "/usr/local/bin/terraform"
	// ProvidersDir is the filesystem mirror of images:
	// <hostname>/<namespace>/<type>/<version>/<os>_<arch>/terraform-provider-<type>_v<version>.
	ProvidersDir = "/usr/local/share/terraform/providers"

	stateFile  = "terraform.tfstate"
	configFile = "main.tf"
)

// Options say where things are. The zero value of a field means its default.
type Options struct {
	// Client reads and writes the Secrets.
	Client client.Client
	// Namespace and Name are those of the extension object. Secrets are <name>.infra.tf-config and
	// <name>.infra.tf-state.
	Namespace, Name string
	// WorkDir is the parent of working directories. Default: a folder of the system's temporary directory.
	WorkDir string
	// Binary defaults to the constant of that name.
	Binary string
	// ProvidersDir defaults to the constant of that name.
	ProvidersDir string
	// Env are variables for the provider, e.g. its credentials. They are not stored.
	Env map[string]string
	Log logr.Logger
}

// Runner applies and destroys one configuration. It is not for concurrent use; a controller runs one per object at a
// time.
type Runner struct {
	options Options
	dir     string
}

// New returns a runner for an extension object.
func New(options Options) *Runner {
	if options.WorkDir == "" {
		options.WorkDir = filepath.Join(os.TempDir(), "terraform")
	}
	if options.Binary == "" {
		options.Binary = Binary
	}
	if options.ProvidersDir == "" {
		options.ProvidersDir = ProvidersDir
	}
	return &Runner{options: options, dir: filepath.Join(options.WorkDir, options.Namespace, options.Name)}
}

// Apply makes the configuration true and returns its outputs.
func (r *Runner) Apply(ctx context.Context, configuration string) (map[string]json.RawMessage, error) {
	if err := r.saveConfig(ctx, configuration); err != nil {
		return nil, err
	}
	tf, err := r.prepare(ctx, configuration)
	if err != nil {
		return nil, err
	}
	err = r.keepingState(ctx, func(ctx context.Context) error { return tf.Apply(ctx, tfexec.Lock(false)) })
	if err != nil {
		return nil, r.describe("apply", err)
	}
	return r.outputs()
}

// Destroy removes everything that the stored configuration and state name, then the stored data. Nothing stored means
// that there is nothing to remove, unless fallback is given: the configuration to destroy by when the stored one was
// lost.
func (r *Runner) Destroy(ctx context.Context, fallback string) error {
	configuration, err := r.loadConfig(ctx)
	if err != nil {
		return err
	}
	if configuration == "" {
		configuration = fallback
	}
	if configuration == "" {
		return r.Forget(ctx)
	}
	tf, err := r.prepare(ctx, configuration)
	if err != nil {
		return err
	}
	err = r.keepingState(ctx, func(ctx context.Context) error { return tf.Destroy(ctx, tfexec.Lock(false)) })
	if err != nil {
		return r.describe("destroy", err)
	}
	return r.Forget(ctx)
}

// Forget removes stored configuration and state without touching the infrastructure (after migration to another seed).
func (r *Runner) Forget(ctx context.Context) error {
	if err := r.deleteStored(ctx); err != nil {
		return err
	}
	return os.RemoveAll(r.dir)
}

// State returns the stored state; empty when there is none.
func (r *Runner) State(ctx context.Context) ([]byte, error) { return r.loadState(ctx) }

// RestoreState stores a state that was taken along from elsewhere, unless there is one already.
func (r *Runner) RestoreState(ctx context.Context, state []byte) error {
	current, err := r.loadState(ctx)
	if err != nil || len(current) > 0 || len(state) == 0 {
		return err
	}
	return r.saveState(ctx, state)
}

// prepare fills the working directory: configuration, stored state, providers.
func (r *Runner) prepare(ctx context.Context, configuration string) (*tfexec.Terraform, error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("terraform: %w", err)
	}
	changed, err := r.writeFile(configFile, []byte(configuration))
	if err != nil {
		return nil, err
	}
	state, err := r.loadState(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.writeState(state); err != nil {
		return nil, err
	}
	if _, err := r.writeFile("terraform.rc", []byte(r.cliConfig())); err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(r.options.Binary); err != nil {
		return nil, fmt.Errorf("terraform: %w; is %s in the image?", err, r.options.Binary)
	}
	tf, err := tfexec.NewTerraform(r.dir, r.options.Binary)
	if err != nil {
		return nil, fmt.Errorf("terraform: %w", err)
	}
	if err := tf.SetEnv(r.environment()); err != nil {
		return nil, fmt.Errorf("terraform: %w", err)
	}
	if changed || !r.initialized() {
		if err := tf.Init(ctx, tfexec.Backend(false), tfexec.Get(false)); err != nil {
			return nil, r.describe("init", err)
		}
	}
	return tf, nil
}

// initialized tells whether providers were resolved in this directory before.
func (r *Runner) initialized() bool {
	_, err := os.Stat(filepath.Join(r.dir, ".terraform.lock.hcl"))
	return err == nil
}

// cliConfig makes the folder of the image the only source of providers.
func (r *Runner) cliConfig() string {
	return fmt.Sprintf("disable_checkpoint = true\nprovider_installation {\n  filesystem_mirror {\n    path = %q\n  "+
		"}\n}\n", r.options.ProvidersDir)
}

func (r *Runner) environment() map[string]string {
	env := map[string]string{
		"TF_CLI_CONFIG_FILE": filepath.Join(r.dir, "terraform.rc"),
		"HOME":               r.dir,
		"PATH":               os.Getenv("PATH"),
		// One small graph per cluster: two threads are enough, and spare the others.
		"GOMAXPROCS": "2",
	}
	for key, value := range r.options.Env {
		env[key] = value
	}
	return env
}

// keepingState runs an operation and stores the state whenever terraform has written a new one, at the latest at its
// end.
func (r *Runner) keepingState(ctx context.Context, operation func(context.Context) error) error {
	// Terraform writes its state when it is interrupted; the process must not end before that is stored.
	storing := context.WithoutCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- operation(ctx) }()
	ticker := time.NewTicker(500 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return errors.Join(err, r.storeStateIfChanged(storing))
		case <-ticker.C:
			if err := r.storeStateIfChanged(storing); err != nil {
				r.options.Log.Error(err, "storing the state while terraform runs; it is repeated")
			}
		}
	}
}

func (r *Runner) storeStateIfChanged(ctx context.Context) error {
	state, err := os.ReadFile(filepath.Join(r.dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("terraform: %w", err)
	}
	if !json.Valid(state) {
		// A write is under way; the complete file is seen next time.
		return nil
	}
	return r.saveState(ctx, state)
}

// outputs reads them from the state, which saves a start of terraform.
func (r *Runner) outputs() (map[string]json.RawMessage, error) {
	data, err := os.ReadFile(filepath.Join(r.dir, stateFile))
	if err != nil {
		return nil, fmt.Errorf("terraform: %w", err)
	}
	return parseOutputs(data)
}

func parseOutputs(state []byte) (map[string]json.RawMessage, error) {
	var parsed struct {
		Outputs map[string]struct {
			Value json.RawMessage `json:"value"`
		} `json:"outputs"`
	}
	if err := json.Unmarshal(state, &parsed); err != nil {
		return nil, fmt.Errorf("terraform: decoding the state: %w", err)
	}
	outputs := make(map[string]json.RawMessage, len(parsed.Outputs))
	for name, output := range parsed.Outputs {
		outputs[name] = output.Value
	}
	return outputs, nil
}

// writeFile writes a file of the working directory and tells whether that changed it.
func (r *Runner) writeFile(name string, content []byte) (bool, error) {
	path := filepath.Join(r.dir, name)
	if current, err := os.ReadFile(path); err == nil && bytes.Equal(current, content) {
		return false, nil
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return false, fmt.Errorf("terraform: %w", err)
	}
	return true, nil
}

// writeState puts the stored state in place; the stored one always wins over what a former run left in the directory.
func (r *Runner) writeState(state []byte) error {
	path := filepath.Join(r.dir, stateFile)
	if len(state) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("terraform: %w", err)
		}
		return nil
	}
	_, err := r.writeFile(stateFile, state)
	return err
}

// describe shortens terraform's output to its errors.
func (r *Runner) describe(verb string, err error) error {
	return &Error{Operation: verb, Object: r.options.Namespace + "/" + r.options.Name, Message: summarize(err.Error())}
}

// Error is a failed run of terraform.
type Error struct {
	// Operation is init, apply or destroy.
	Operation string
	// Object is the namespace and name of the extension object.
	Object string
	// Message is what terraform reported.
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("terraform %s for %s: %s", e.Operation, e.Object, e.Message)
}

// summarize takes the frame, colours and empty lines from terraform's error boxes.
func summarize(output string) string {
	var lines []string
	for _, line := range strings.Split(output, "\n") {
		line = strings.TrimSpace(strings.Trim(strings.TrimSpace(line), "╷│╵"))
		if line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
