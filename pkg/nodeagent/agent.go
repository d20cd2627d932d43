package nodeagent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

const (
	// ChecksumAnnotation on the Node is the SHA-256 of the configuration that the machine runs.
	ChecksumAnnotation = "checksum/cloud-config-data"
	secretNamespace    = "kube-system"
	// retryPeriod is the pause after a failure and between looks for kubelet's certificate.
	retryPeriod = time.Second
	// resyncPeriod bounds how long a change that no watch reported stays unseen.
	resyncPeriod = 5 * time.Minute
)

// Agent applies the OperatingSystemConfig of one machine for as long as it runs.
type Agent struct {
	config  *Config
	log     logr.Logger
	machine *machine
	applied *desired
	// failing is since when an update in place fails, and patience how long it may; updatePatience if 0.
	failing  time.Time
	patience time.Duration
	// renewed says which rotation this process has got the kubelet's certificates for. What is left of an update may
	// fail for long, and that often no certificate is asked for.
	renewed string
}

// New connects to systemd and remembers what was applied before.
func New(ctx context.Context, config *Config, log logr.Logger) (*Agent, error) {
	connection, err := dbus.NewSystemdConnectionContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to systemd: %w", err)
	}
	agent := &Agent{config: config, log: log, applied: &desired{}}
	agent.machine = &machine{
		root: "/", log: log, units: systemd{connection}, extract: extractWithContainerd,
		defaultConfig: defaultContainerdConfig,
	}
	agent.recall()
	return agent, nil
}

// recall reads what was applied before. Where that cannot be known, everything is applied again.
func (a *Agent) recall() {
	data, err := os.ReadFile(a.machine.path(AppliedPath))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	applied := &desired{}
	if err == nil {
		err = yaml.Unmarshal(data, applied)
	}
	if err != nil {
		a.log.Error(err, "What was applied before is not known; everything is applied again", "path", AppliedPath)
		return
	}
	a.applied = applied
}

// Run applies the configuration, and every change of it, until ctx ends. Failures are logged and tried again.
func (a *Agent) Run(ctx context.Context) error {
	for {
		err := a.runOnce(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			a.log.Error(err, "Trying again", "after", retryPeriod)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPeriod):
		}
	}
}

// runOnce fetches and applies the configuration and then waits for a change of it.
func (a *Agent) runOnce(ctx context.Context) error {
	client, joined, err := a.client()
	if err != nil {
		return err
	}
	// The node comes first: what is there when that is ready for an update is what it is ready for.
	var node *corev1.Node
	if joined {
		if node, err = a.node(ctx, client); err != nil {
			return err
		}
	}
	secret, err := client.CoreV1().Secrets(secretNamespace).Get(ctx, a.config.OperatingSystemConfigSecretName,
		metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("fetching Secret %s/%s: %w", secretNamespace, a.config.OperatingSystemConfigSecretName, err)
	}
	wanted, err := wantedBy(secret)
	if err != nil {
		return err
	}
	whole, err := a.bringAbout(ctx, client, node, wanted)
	if err != nil {
		return err
	}
	if !joined {
		return a.waitForKubelet(ctx)
	}
	if whole {
		if err := a.annotateNode(ctx, client, checksum(secret.Data[DataKey])); err != nil {
			return err
		}
	}
	return a.waitForChange(ctx, client, secret, node)
}

// bringAbout applies what is wanted, and says whether that was all of it: some of it may wait for the node's drain.
func (a *Agent) bringAbout(ctx context.Context, client kubernetes.Interface, node *corev1.Node,
	wanted *desired) (whole bool, err error) {
	switch {
	case wanted.InPlace != nil && isReadyForUpdate(node):
		return true, a.update(ctx, client, node, wanted)
	case a.applied.waitsForDrain(wanted):
		return false, a.apply(ctx, wanted.holding(a.applied))
	}
	return true, a.apply(ctx, wanted)
}

// client uses kubelet's credentials once they are there, and the bootstrap token before.
func (a *Agent) client() (client kubernetes.Interface, joined bool, err error) {
	restConfig, err := clientcmd.BuildConfigFromFlags("", a.machine.path(KubeletKubeconfigPath))
	if err != nil {
		restConfig, err = a.config.bootstrapClient()
	} else {
		joined = true
	}
	if err != nil {
		return nil, false, err
	}
	restConfig.UserAgent = "node-agent"
	client, err = kubernetes.NewForConfig(rest.CopyConfig(restConfig))
	return client, joined, err
}

// wantedBy reads what a Secret asks of this machine.
func wantedBy(secret *corev1.Secret) (*desired, error) {
	data, ok := secret.Data[DataKey]
	if !ok {
		return nil, fmt.Errorf("Secret %s/%s has no key %s", secret.Namespace, secret.Name, DataKey)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	return decode(data, host)
}

// apply brings the machine from what was applied to what is wanted, and remembers that.
func (a *Agent) apply(ctx context.Context, wanted *desired) error {
	if err := a.writeBootstrapKubeconfig(); err != nil {
		return err
	}
	todo := diff(a.applied, wanted)
	if todo.empty() && !a.succeeds(wanted) {
		return nil
	}
	if !todo.onlyAwaits() {
		a.log.Info("Applying the configuration", "files", len(todo.writeFiles), "units", len(todo.writeUnits),
			"restarts", len(todo.restart))
		if err := a.machine.apply(ctx, todo); err != nil {
			return err
		}
	}
	done := *wanted
	done.InPlace = a.inPlaceAfter(wanted)
	missing, err := a.machine.awaitedRegistries(ctx, todo.registries)
	return errors.Join(a.remember(done.without(missing)), err)
}

func (a *Agent) remember(wanted *desired) error {
	data, err := yaml.Marshal(wanted)
	if err != nil {
		return err
	}
	if err := writeIfChanged(a.machine.path(AppliedPath), data, 0o600); err != nil {
		return err
	}
	a.applied = wanted
	return nil
}

// writeBootstrapKubeconfig gives kubelet what it needs to ask for its certificate; not needed once it has joined.
func (a *Agent) writeBootstrapKubeconfig() error {
	if _, err := os.Stat(a.machine.path(KubeletKubeconfigPath)); err == nil || a.config.BootstrapToken == "" {
		return nil
	}
	bundle, err := a.config.caBundle()
	if err != nil {
		return err
	}
	kubeconfig := clientcmdapi.Config{
		CurrentContext: "shoot",
		Clusters: map[string]*clientcmdapi.Cluster{
			"shoot": {Server: a.config.APIServer.Server, CertificateAuthorityData: bundle},
		},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"kubelet-bootstrap": {Token: a.config.BootstrapToken}},
		Contexts:  map[string]*clientcmdapi.Context{"shoot": {Cluster: "shoot", AuthInfo: "kubelet-bootstrap"}},
	}
	data, err := clientcmd.Write(kubeconfig)
	if err != nil {
		return err
	}
	return writeIfChanged(a.machine.path(BootstrapKubeconfigPath), data, 0o600)
}

// waitForKubelet waits until kubelet has exchanged the bootstrap token for a certificate.
func (a *Agent) waitForKubelet(ctx context.Context) error {
	ticker := time.NewTicker(retryPeriod)
	defer ticker.Stop()
	deadline := time.After(resyncPeriod)
	for {
		if _, err := os.Stat(a.machine.path(KubeletKubeconfigPath)); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-deadline:
			return fmt.Errorf("kubelet has no certificate after %s; see: journalctl -u kubelet", resyncPeriod)
		case <-ticker.C:
		}
	}
}

func (a *Agent) annotateNode(ctx context.Context, client kubernetes.Interface, sum string) error {
	name, err := a.nodeName()
	if err != nil {
		return err
	}
	node, err := a.node(ctx, client)
	if err != nil {
		return err
	}
	if node == nil {
		return fmt.Errorf("Node %s has not registered yet", name)
	}
	wanted := map[string]string{ChecksumAnnotation: sum}
	keys, err := a.machine.sshHostKeys()
	if err != nil {
		return err
	}
	if keys != "" {
		wanted[gardencorev1beta1.AnnotationNodeSSHHostKeys] = keys
	}
	maps.DeleteFunc(wanted, func(key, value string) bool { return node.Annotations[key] == value })
	if len(wanted) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": wanted}})
	if err != nil {
		return err
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("annotating Node %s: %w", name, err)
	}
	return nil
}

// waitForChange returns when the Secret has another version, when the node is ready for an update and was not, or
// after resyncPeriod.
func (a *Agent) waitForChange(ctx context.Context, client kubernetes.Interface, secret *corev1.Secret,
	node *corev1.Node) error {
	ctx, cancel := context.WithTimeout(ctx, resyncPeriod)
	defer cancel()
	secrets, err := client.CoreV1().Secrets(secretNamespace).Watch(ctx, only(secret))
	if err != nil {
		return fmt.Errorf("watching Secret %s/%s: %w", secretNamespace, secret.Name, err)
	}
	defer secrets.Stop()
	var nodes <-chan watch.Event
	if a.applied.InPlace != nil && node != nil {
		watcher, err := client.CoreV1().Nodes().Watch(ctx, only(node))
		if err != nil {
			return fmt.Errorf("watching Node %s: %w", node.Name, err)
		}
		defer watcher.Stop()
		nodes = watcher.ResultChan()
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-secrets.ResultChan():
			if !open {
				a.log.V(1).Info("The watch ended")
			}
			return nil
		case event := <-nodes:
			changed, isNode := event.Object.(*corev1.Node)
			if !isNode || isReadyForUpdate(changed) != isReadyForUpdate(node) {
				return nil
			}
		}
	}
}

// only are the options of a watch of one object, from the version on that is known.
func only(object metav1.Object) metav1.ListOptions {
	return metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector("metadata.name", object.GetName()).String(),
		ResourceVersion: object.GetResourceVersion(),
	}
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
