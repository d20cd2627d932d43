package trellisctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// execExtension is where a kubeconfig tells a credential plugin about a cluster.
const execExtension = "client.authentication.k8s.io/exec"

// gardenRequests bounds how many questions one command asks the garden at a time.
const gardenRequests = 8

// execAccess are the flags for kubeconfigs without credentials, which kubectl fetches when they are needed.
type execAccess struct{ exec, all, allProjects bool }

func (a *execAccess) flags(command *cobra.Command) {
	command.Flags().BoolVar(&a.exec, "exec", false,
		"hold no credentials: kubectl runs `trellisctl credential`, which fetches them and keeps them until they end")
	command.Flags().BoolVar(&a.all, "all", false, "one file for all shoots of the project, as with --exec")
	command.Flags().BoolVarP(&a.allProjects, "all-projects", "A", false, "one file for the shoots of all projects")
}

// kubeconfigOrExec has credentials in it unless flags say that kubectl is to fetch them.
func (c *cli) kubeconfigOrExec(command *cobra.Command, access execAccess) ([]byte, error) {
	if access == (execAccess{}) {
		return c.kubeconfig(command.Context())
	}
	return c.execKubeconfig(command.Context(), access, tell(command))
}

// execKubeconfig is a kubeconfig of one shoot or of many, which has kubectl run this program.
func (c *cli) execKubeconfig(ctx context.Context, access execAccess, tell func(string, ...any)) ([]byte, error) {
	session, err := c.connect()
	if err != nil {
		return nil, err
	}
	plugin, err := c.pluginFor(session)
	if err != nil {
		return nil, err
	}
	many := access.all || access.allProjects
	if many && (c.flags.Shoot != "" || c.flags.Seed != "" || c.flags.ControlPlane) {
		return nil, errors.New("--all and -A are for all shoots: leave out --shoot, --seed and --control-plane")
	}
	if many {
		kubeconfig, err := session.kubeconfigOfAll(ctx, access.allProjects, plugin, tell)
		if err != nil {
			return nil, err
		}
		return clientcmd.Write(*kubeconfig)
	}
	if session.Target.ControlPlane || session.Target.Shoot == "" {
		return nil, errors.New("--exec is for shoots, and fetches nothing for gardens, seeds and control planes: add " +
			"--shoot NAME, or leave out --exec")
	}
	shoot, err := session.Shoot(ctx)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := session.kubeconfigOfOne(ctx, shoot, plugin)
	if err != nil {
		return nil, err
	}
	return clientcmd.Write(*kubeconfig)
}

// plugin is how kubectl runs `trellisctl credential`.
type plugin struct {
	// command and config are absolute paths: kubectl may be run anywhere.
	command, config, garden string
	level                   AccessLevel
	expiration              time.Duration
}

func (c *cli) pluginFor(session *Session) (plugin, error) {
	level := AccessLevel(c.level)
	if !slices.Contains([]AccessLevel{AccessAdmin, AccessViewer, AccessAuto}, level) {
		return plugin{}, unknownLevel(level)
	}
	command, err := os.Executable()
	if err != nil {
		return plugin{}, err
	}
	config, err := filepath.Abs(session.configPath)
	if err != nil {
		return plugin{}, err
	}
	return plugin{command, config, session.garden.Name, level, c.expiration}, nil
}

func unknownLevel(level AccessLevel) error {
	return fmt.Errorf("access level %q: choose admin, viewer or auto", level)
}

// user is its entry in a kubeconfig. One serves all clusters of a garden: kubectl tells it which is meant.
func (p plugin) user() *clientcmdapi.AuthInfo {
	return &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{
		APIVersion: execAPIVersion, Command: p.command,
		Args: []string{
			"credential", "--config=" + p.config, "--garden=" + p.garden, "--access-level=" + string(p.level),
			"--expiration=" + p.expiration.String(),
		},
		InstallHint:        "The kubeconfig was written by trellisctl, which is not there any more: write it anew.",
		ProvideClusterInfo: true, InteractiveMode: clientcmdapi.IfAvailableExecInteractiveMode,
	}}
}

func (p plugin) userName() string { return p.garden + "/" + string(p.level) }

// execCluster is what a kubeconfig tells the plugin of a cluster, in the form that gardenlogin reads.
type execCluster struct {
	ShootRef              shootRef `json:"shootRef"`
	GardenClusterIdentity string   `json:"gardenClusterIdentity"`
}

type shootRef struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// errNoAPIYet is why a shoot cannot be in a kubeconfig.
var errNoAPIYet = errors.New("has no address or no certificate authority yet; `trellisctl ls shoots` shows how far " +
	"it is")

func (s *Session) kubeconfigOfOne(ctx context.Context, shoot *gardencorev1beta1.Shoot,
	plugin plugin) (*clientcmdapi.Config, error) {
	cluster, err := s.execCluster(ctx, shoot)
	if err != nil {
		return nil, fmt.Errorf("shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return nil, err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.AuthInfos[plugin.userName()] = plugin.user()
	name := s.contextName(shoot, projects)
	addCluster(kubeconfig, name, cluster, plugin)
	kubeconfig.CurrentContext = name
	return kubeconfig, s.garden.Route(kubeconfig)
}

// kubeconfigOfAll has a context for each shoot that has an API, and no current one: nobody is to change a cluster that
// they have not chosen.
func (s *Session) kubeconfigOfAll(ctx context.Context, allProjects bool, plugin plugin,
	tell func(string, ...any)) (*clientcmdapi.Config, error) {
	shoots, err := s.shootsOfTarget(ctx, allProjects)
	if err != nil {
		return nil, err
	}
	projects, err := s.projectsByNamespace(ctx)
	if err != nil {
		return nil, err
	}
	clusters, err := s.execClusters(ctx, shoots, tell)
	if err != nil {
		return nil, err
	}
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.AuthInfos[plugin.userName()] = plugin.user()
	for i, cluster := range clusters {
		if cluster != nil {
			addCluster(kubeconfig, s.contextName(&shoots[i], projects), cluster, plugin)
		}
	}
	if len(kubeconfig.Contexts) == 0 {
		return nil, errors.New("there are no shoots with an API; `trellisctl ls shoots` shows those that are made")
	}
	return kubeconfig, s.garden.Route(kubeconfig)
}

// shootsOfTarget are those of the targeted project, or all that the user may see.
func (s *Session) shootsOfTarget(ctx context.Context, allProjects bool) ([]gardencorev1beta1.Shoot, error) {
	namespace := ""
	if !allProjects {
		if s.Target.Project == "" {
			return nil, errors.New("the shoots of which project? Add --project NAME, or -A for those of all projects")
		}
		var err error
		if namespace, err = s.projectNamespace(ctx, s.Target.Project); err != nil {
			return nil, err
		}
	}
	shoots := &gardencorev1beta1.ShootList{}
	if err := s.client.List(ctx, shoots, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing shoots: %w", err)
	}
	return shoots.Items, nil
}

// execClusters asks for several shoots at a time. Those that have no API, and those that the user may not look into,
// are told and left out.
func (s *Session) execClusters(ctx context.Context, shoots []gardencorev1beta1.Shoot,
	tell func(string, ...any)) ([]*clientcmdapi.Cluster, error) {
	clusters, left := make([]*clientcmdapi.Cluster, len(shoots)), make([]error, len(shoots))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(gardenRequests)
	for i := range shoots {
		group.Go(func() error {
			cluster, err := s.execCluster(ctx, &shoots[i])
			if errors.Is(err, errNoAPIYet) || apierrors.IsForbidden(err) {
				left[i] = err
				return nil
			}
			clusters[i] = cluster
			return err
		})
	}
	err := group.Wait()
	for i, why := range left {
		if why != nil {
			tell("left out: shoot %s/%s: %s", shoots[i].Namespace, shoots[i].Name, oneLine(why.Error()))
		}
	}
	return clusters, err
}

// execCluster is the cluster of a shoot with what the plugin needs to know.
func (s *Session) execCluster(ctx context.Context, shoot *gardencorev1beta1.Shoot) (*clientcmdapi.Cluster, error) {
	address := apiAddress(shoot)
	if address == "" {
		return nil, errNoAPIYet
	}
	name := shoot.Name + "." + gardencorev1beta1.ShootProjectConfigMapSuffixCACluster
	authority := &corev1.ConfigMap{}
	err := s.client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, authority)
	if apierrors.IsNotFound(err) || err == nil && authority.Data[gardencorev1beta1.DataKeyCACert] == "" {
		return nil, errNoAPIYet
	}
	if err != nil {
		return nil, fmt.Errorf("its certificate authority, ConfigMap %s/%s: %w", shoot.Namespace, name, err)
	}
	identity := s.garden.Identity
	if identity == "" {
		identity = s.garden.Name
	}
	extension, err := json.Marshal(execCluster{shootRef{shoot.Namespace, shoot.Name}, identity})
	if err != nil {
		return nil, err
	}
	cluster := clientcmdapi.NewCluster()
	cluster.Server = strings.TrimSuffix(address, "/")
	cluster.CertificateAuthorityData = []byte(authority.Data[gardencorev1beta1.DataKeyCACert])
	cluster.Extensions[execExtension] = &runtime.Unknown{Raw: extension, ContentType: runtime.ContentTypeJSON}
	return cluster, nil
}

// apiAddress is where a shoot's API is reached best; empty if it has no address yet.
func apiAddress(shoot *gardencorev1beta1.Shoot) string {
	for _, name := range []string{
		gardencorev1beta1.AdvertisedAddressExternal, gardencorev1beta1.AdvertisedAddressInternal,
		gardencorev1beta1.AdvertisedAddressUnmanaged,
	} {
		for _, address := range shoot.Status.AdvertisedAddresses {
			if address.Name == name {
				return address.URL
			}
		}
	}
	return ""
}

// contextName is GARDEN/PROJECT/SHOOT. Neither projects nor shoots can have a slash or a colon in their names, so no
// two shoots have the same; a namespace without a project is told as such.
func (s *Session) contextName(shoot *gardencorev1beta1.Shoot, projects map[string]string) string {
	project := projects[shoot.Namespace]
	if project == "" {
		project = "namespace:" + shoot.Namespace
	}
	return s.garden.Name + "/" + project + "/" + shoot.Name
}

func addCluster(kubeconfig *clientcmdapi.Config, name string, cluster *clientcmdapi.Cluster, plugin plugin) {
	kubeContext := clientcmdapi.NewContext()
	kubeContext.Cluster, kubeContext.AuthInfo, kubeContext.Namespace = name, plugin.userName(), "default"
	kubeconfig.Clusters[name], kubeconfig.Contexts[name] = cluster, kubeContext
}
