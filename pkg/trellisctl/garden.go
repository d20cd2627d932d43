package trellisctl

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// gardenNamespace holds what belongs to operators.
const gardenNamespace = "garden"

const (
	// userAgent is what API servers are told of who asks.
	userAgent = "trellisctl"
	// requestTimeout bounds requests that are answered at once.
	requestTimeout = 30 * time.Second
)

// Session is a connection to the garden of a target.
type Session struct {
	Target Target
	garden *Garden
	client client.Client
	// watches is the client for watches, which take longer than any other request may.
	watches client.WithWatch
	// configPath is where the garden was found.
	configPath string
	// listNodes lists the nodes of a shoot; nil asks the shoot.
	listNodes func(ctx context.Context, shoot *gardencorev1beta1.Shoot) ([]corev1.Node, error)
}

// Connect opens the garden of the target.
func Connect(config *Config, target Target) (*Session, error) {
	garden, err := config.Garden(target.Garden)
	if err != nil {
		return nil, err
	}
	target.Garden = garden.Name
	restConfig, err := garden.restConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.New(restConfig, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		return nil, fmt.Errorf("garden %s (%s): %w", garden.Name, restConfig.Host, err)
	}
	restConfig = rest.CopyConfig(restConfig)
	restConfig.Timeout = 0
	watches, err := client.NewWithWatch(restConfig, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("garden %s (%s): %w", garden.Name, restConfig.Host, err)
	}
	return &Session{Target: target, garden: garden, client: c, watches: watches, configPath: config.path}, nil
}

func (g *Garden) clientConfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: g.Kubeconfig},
		&clientcmd.ConfigOverrides{CurrentContext: g.Context})
}

func (g *Garden) restConfig() (*rest.Config, error) {
	config, err := g.clientConfig().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s of garden %s: %w", g.Kubeconfig, g.Name, err)
	}
	config.UserAgent, config.Timeout = userAgent, requestTimeout
	return bounded(config), nil
}

// restConfigOf is for requests by a kubeconfig that the garden has given.
func restConfigOf(kubeconfig *clientcmdapi.Config) (*rest.Config, error) {
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	config.UserAgent, config.Timeout = userAgent, requestTimeout
	return bounded(config), nil
}

// Project finds a project by name.
func (s *Session) Project(ctx context.Context, name string) (*gardencorev1beta1.Project, error) {
	project := &gardencorev1beta1.Project{}
	if err := s.client.Get(ctx, client.ObjectKey{Name: name}, project); err != nil {
		return nil, explain(err, "project", name, "trellisctl ls projects")
	}
	return project, nil
}

// projectNamespace is where the shoots of a project are.
func (s *Session) projectNamespace(ctx context.Context, name string) (string, error) {
	project, err := s.Project(ctx, name)
	if err != nil {
		return "", err
	}
	if deref(project.Spec.Namespace) == "" {
		return "", fmt.Errorf("project %s has no namespace yet; try again in a moment", project.Name)
	}
	return *project.Spec.Namespace, nil
}

// Shoot finds the shoot of the target: in its project, or the only one of that name that the user may see.
func (s *Session) Shoot(ctx context.Context) (*gardencorev1beta1.Shoot, error) {
	if s.Target.Shoot == "" {
		return nil, fmt.Errorf("no shoot is targeted: add --shoot NAME, or run `trellisctl target --project NAME " +
			"--shoot NAME`")
	}
	if s.Target.Project != "" {
		namespace, err := s.projectNamespace(ctx, s.Target.Project)
		if err != nil {
			return nil, err
		}
		shoot := &gardencorev1beta1.Shoot{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: s.Target.Shoot}, shoot); err != nil {
			return nil, explain(err, "shoot", s.Target.Shoot, "trellisctl ls shoots --project "+s.Target.Project)
		}
		return shoot, nil
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := s.client.List(ctx, shoots, client.MatchingFields{"metadata.name": s.Target.Shoot}); err != nil {
		return nil, fmt.Errorf("looking for shoot %s in all projects (name one with --project): %w", s.Target.Shoot,
			explainKinds(err))
	}
	switch len(shoots.Items) {
	case 0:
		return nil, fmt.Errorf("shoot %q does not exist; `trellisctl ls shoots` shows those that do", s.Target.Shoot)
	case 1:
		return &shoots.Items[0], nil
	}
	return nil, s.ambiguous(ctx, shoots.Items)
}

// ambiguous lists the projects that have a shoot of one name.
func (s *Session) ambiguous(ctx context.Context, shoots []gardencorev1beta1.Shoot) error {
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		projects = nil // Namespaces are better than nothing.
	}
	var names []string
	for i := range shoots {
		names = append(names, orElse(projects[shoots[i].Namespace], shoots[i].Namespace))
	}
	slices.Sort(names)
	return fmt.Errorf("several projects have a shoot %q: choose one with --project, of %s", s.Target.Shoot,
		strings.Join(names, ", "))
}

// hasControlPlane says whether a seed has begun to work on the shoot.
func hasControlPlane(shoot *gardencorev1beta1.Shoot) error {
	if shoot.Spec.SeedName == nil || shoot.Status.TechnicalID == "" {
		return fmt.Errorf("shoot %s/%s has no control plane yet; `trellisctl ls shoots` shows how far it is",
			shoot.Namespace, shoot.Name)
	}
	return nil
}

// explain turns the errors that users meet most often into a sentence with the next step.
func explain(err error, kind, name, list string) error {
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s %q does not exist; `%s` shows those that do", kind, name, list)
	case apierrors.IsForbidden(err):
		whom := "an owner of the project to add you as a member"
		if kind == "seed" || kind == "cloud profile" {
			whom = "an operator of the garden"
		}
		return fmt.Errorf("you may not read %s %q: ask %s (%w)", kind, name, whom, err)
	}
	return fmt.Errorf("reading %s %q: %w", kind, name, explainKinds(err))
}

// explainKinds adds what to do about an API that serves none of the garden's kinds: it is some other cluster's.
func explainKinds(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("%w; so the API is none of a garden: `trellisctl config view` shows which kubeconfig leads "+
			"there, and `trellisctl config set-garden IDENTITY --kubeconfig FILE` gives another", err)
	}
	return err
}

// AccessLevel says what a shoot's kubeconfig may do.
type AccessLevel string

// Access levels. Auto takes admin and falls back to viewer where admin is forbidden.
const (
	AccessAdmin  AccessLevel = "admin"
	AccessViewer AccessLevel = "viewer"
	AccessAuto   AccessLevel = "auto"
)

// ShootKubeconfig asks the garden for a short-lived kubeconfig of the shoot.
func (s *Session) ShootKubeconfig(ctx context.Context, shoot *gardencorev1beta1.Shoot, level AccessLevel,
	expiration time.Duration) (*clientcmdapi.Config, error) {
	seconds := int64(expiration.Seconds())
	var raw []byte
	err := unknownLevel(level)
	if level == AccessAdmin || level == AccessAuto {
		request := &authenticationv1alpha1.AdminKubeconfigRequest{
			Spec: authenticationv1alpha1.AdminKubeconfigRequestSpec{ExpirationSeconds: &seconds},
		}
		err = s.client.SubResource("adminkubeconfig").Create(ctx, shoot, request)
		raw = request.Status.Kubeconfig
	}
	if level == AccessViewer || (level == AccessAuto && apierrors.IsForbidden(err)) {
		request := &authenticationv1alpha1.ViewerKubeconfigRequest{
			Spec: authenticationv1alpha1.ViewerKubeconfigRequestSpec{ExpirationSeconds: &seconds},
		}
		err = s.client.SubResource("viewerkubeconfig").Create(ctx, shoot, request)
		raw = request.Status.Kubeconfig
	}
	if err != nil {
		return nil, fmt.Errorf("kubeconfig of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return s.routed(raw)
}

// SeedKubeconfig is the access that operators have stored for a seed: Secret <seed>.login in the garden namespace.
func (s *Session) SeedKubeconfig(ctx context.Context, seed string) (*clientcmdapi.Config, error) {
	secret := &corev1.Secret{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: gardenNamespace, Name: seed + ".login"}, secret)
	if err != nil {
		return nil, fmt.Errorf("access to seed %s is kept in Secret %s/%s.login, which operators may read%s: %w", seed,
			gardenNamespace, seed, whoMay(err), err)
	}
	return s.routed(secret.Data["kubeconfig"])
}

// whoMay says what to do about access that somebody has not, or that nobody has.
func whoMay(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return " and you may not; ask an operator of the garden (whom ClusterRole " +
			"gardener.cloud:system:administrators is bound to)"
	case apierrors.IsNotFound(err):
		return ", and there is none; `trellisctl ls seeds` shows the seeds that there are, and an operator can store it"
	}
	return ""
}

func (s *Session) routed(raw []byte) (*clientcmdapi.Config, error) {
	kubeconfig, err := clientcmd.Load(raw)
	if err != nil {
		return nil, fmt.Errorf("the garden answered with a kubeconfig that cannot be read: %w", err)
	}
	return kubeconfig, s.garden.Route(kubeconfig)
}

// Kubeconfig is the kubeconfig of the target: of the garden, a seed, a shoot, or the seed namespace of a shoot's
// control plane.
func (s *Session) Kubeconfig(ctx context.Context, level AccessLevel,
	expiration time.Duration) (*clientcmdapi.Config, error) {
	switch {
	case s.Target.ControlPlane:
		shoot, err := s.Shoot(ctx)
		if err != nil {
			return nil, err
		}
		return s.controlPlaneKubeconfig(ctx, shoot)
	case s.Target.Shoot != "":
		shoot, err := s.Shoot(ctx)
		if err != nil {
			return nil, err
		}
		return s.ShootKubeconfig(ctx, shoot, level, expiration)
	case s.Target.Seed != "":
		return s.SeedKubeconfig(ctx, s.Target.Seed)
	}
	return s.gardenKubeconfig(ctx)
}

func (s *Session) controlPlaneKubeconfig(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (*clientcmdapi.Config, error) {
	if err := hasControlPlane(shoot); err != nil {
		return nil, err
	}
	kubeconfig, err := s.SeedKubeconfig(ctx, *shoot.Spec.SeedName)
	if err != nil {
		return nil, err
	}
	setNamespace(kubeconfig, shoot.Status.TechnicalID)
	return kubeconfig, nil
}

func (s *Session) gardenKubeconfig(ctx context.Context) (*clientcmdapi.Config, error) {
	raw, err := s.garden.clientConfig().RawConfig()
	if err != nil {
		return nil, err
	}
	if s.garden.Context != "" {
		raw.CurrentContext = s.garden.Context
	}
	if err := clientcmdapi.MinifyConfig(&raw); err != nil {
		return nil, err
	}
	if err := clientcmdapi.FlattenConfig(&raw); err != nil {
		return nil, err
	}
	if s.Target.Project == "" {
		return &raw, nil
	}
	project, err := s.Project(ctx, s.Target.Project)
	if err != nil {
		return nil, err
	}
	if project.Spec.Namespace != nil {
		setNamespace(&raw, *project.Spec.Namespace)
	}
	return &raw, nil
}

func setNamespace(kubeconfig *clientcmdapi.Config, namespace string) {
	for _, kubeContext := range kubeconfig.Contexts {
		kubeContext.Namespace = namespace
	}
}
