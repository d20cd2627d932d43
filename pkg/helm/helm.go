// Package helm installs Helm charts: Trellis' own parts in the local landscape, and extensions in a seed.
//
// It wraps Helm's SDK so that installing is one idempotent call: the first call installs, later ones upgrade, and a
// release that a killed process left pending is taken over. Custom resource definitions of a chart are applied on every
// call. Waiting for the installed objects is a call of its own (WaitReady), which tells what is missing.
package helm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// keptRevisions is how many revisions of a release are kept as Secrets in its namespace.
	keptRevisions = 2
	// operationTimeout bounds hooks of a chart; waiting for objects is not part of an operation.
	operationTimeout = 5 * time.Minute
)

// Release says what is to be installed, where, and with which values.
type Release struct {
	// Namespace is where the release is recorded and its namespaced objects go; it is created when missing.
	Namespace string
	// Name is the name of the release, unique in the namespace.
	Name string
	// Chart is what LoadFS or LoadArchive returned.
	Chart *chart.Chart
	// Values are merged over the chart's own values.yaml.
	Values map[string]any
	// Change, when set, changes the objects that the chart renders, before they are applied. Hooks are not changed.
	Change func(*unstructured.Unstructured) error
}

func (r Release) String() string { return r.Namespace + "/" + r.Name }

// Client installs charts in one cluster.
type Client struct {
	getter *clientGetter
	client client.Client
}

// NewClient returns a client for the cluster that config leads to. It makes no request.
func NewClient(config *rest.Config) (*Client, error) {
	getter, err := newClientGetter(config)
	if err != nil {
		return nil, fmt.Errorf("helm client for %s: %w", config.Host, err)
	}
	c, err := client.New(getter.config, client.Options{Mapper: getter.mapper})
	if err != nil {
		return nil, fmt.Errorf("helm client for %s: %w", config.Host, err)
	}
	return &Client{getter: getter, client: c}, nil
}

// Install brings the cluster to the state of the release's chart and values: it installs what is not installed and
// upgrades what is. It does not wait for the objects to become ready.
func (c *Client) Install(ctx context.Context, r Release) (*release.Release, error) {
	configuration, err := c.configuration(r.Namespace)
	if err != nil {
		return nil, err
	}
	if err := c.applyCRDs(ctx, r.Chart); err != nil {
		return nil, fmt.Errorf("release %s: %w", r, err)
	}
	installed, err := takeOver(configuration, r.Name)
	if err != nil {
		return nil, fmt.Errorf("release %s: reading its history: %w", r, err)
	}
	var result *release.Release
	if installed {
		result, err = upgrade(ctx, configuration, r)
	} else {
		result, err = install(ctx, configuration, r)
	}
	if err != nil {
		return nil, fmt.Errorf("release %s: %w", r, err)
	}
	return result, nil
}

// Uninstall removes the objects of a release and its history. It returns nil when there is no such release. Custom
// resource definitions stay, because other objects may depend on them.
func (c *Client) Uninstall(_ context.Context, namespace, name string) error {
	configuration, err := c.configuration(namespace)
	if err != nil {
		return err
	}
	// Unlike the other operations of Helm this one begins with whatever kinds are known from before.
	c.getter.forget()
	if err := uninstall(configuration, name); err != nil {
		return fmt.Errorf("release %s/%s: uninstalling: %w", namespace, name, err)
	}
	return nil
}

// uninstall goes on where it finds a revision gone that was there when it began: the upgrade of another process, which
// ends meanwhile, takes old ones away.
func uninstall(configuration *action.Configuration, name string) error {
	run := func() error {
		uninstall := action.NewUninstall(configuration)
		uninstall.IgnoreNotFound = true
		uninstall.Timeout = operationTimeout
		_, err := uninstall.Run(name)
		return err
	}
	err := run()
	if err != nil && strings.Contains(err.Error(), driver.ErrReleaseNotFound.Error()) { // told as text
		err = run()
	}
	return err
}

func (c *Client) configuration(namespace string) (*action.Configuration, error) {
	log := ctrl.Log.WithName("helm").V(1)
	configuration := &action.Configuration{}
	debug := func(format string, args ...any) { log.Info(fmt.Sprintf(format, args...), "namespace", namespace) }
	if err := configuration.Init(c.getter.inNamespace(namespace), namespace, "secrets", debug); err != nil {
		return nil, fmt.Errorf("helm in namespace %s: %w", namespace, err)
	}
	return configuration, nil
}

func install(ctx context.Context, configuration *action.Configuration, r Release) (*release.Release, error) {
	install := action.NewInstall(configuration)
	install.Namespace = r.Namespace
	install.ReleaseName = r.Name
	install.CreateNamespace = true
	install.SkipCRDs = true
	install.TakeOwnership = true
	install.Timeout = operationTimeout
	install.PostRenderer = r.postRenderer()
	return install.RunWithContext(ctx, r.Chart, r.Values)
}

func upgrade(ctx context.Context, configuration *action.Configuration, r Release) (*release.Release, error) {
	upgrade := action.NewUpgrade(configuration)
	upgrade.Install = true
	upgrade.Namespace = r.Namespace
	upgrade.ResetValues = true
	upgrade.SkipCRDs = true
	upgrade.TakeOwnership = true
	upgrade.MaxHistory = keptRevisions
	upgrade.Timeout = operationTimeout
	upgrade.PostRenderer = r.postRenderer()
	return upgrade.RunWithContext(ctx, r.Name, r.Chart, r.Values)
}

// takeOver says whether there is a release to upgrade. A process that was killed leaves its revision pending, and Helm
// then refuses every further operation: such a revision is marked as failed, or removed when nothing came before it.
func takeOver(configuration *action.Configuration, name string) (installed bool, err error) {
	history, err := configuration.Releases.History(name)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	everDeployed := false
	for _, revision := range history {
		if revision.Info.Status.IsPending() {
			revision.SetStatus(release.StatusFailed, "its installer ended before it was done")
			if err := configuration.Releases.Update(revision); err != nil {
				return false, err
			}
		}
		switch revision.Info.Status {
		case release.StatusDeployed, release.StatusSuperseded:
			everDeployed = true
		}
	}
	if everDeployed {
		return true, nil
	}
	for _, revision := range history {
		if _, err := configuration.Releases.Delete(revision.Name, revision.Version); err != nil {
			return false, err
		}
	}
	return false, nil
}
