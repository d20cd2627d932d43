package trellisctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientauthenticationv1 "k8s.io/client-go/pkg/apis/clientauthentication/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/certcache"
)

// execAPIVersion is the form of what kubectl and credential plugins tell each other.
const execAPIVersion = "client.authentication.k8s.io/v1"

// execInfoEnv is where kubectl tells a plugin what it wants.
const execInfoEnv = "KUBERNETES_EXEC_INFO"

func (c *cli) credentialCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "credential",
		Short: "Give kubectl a client certificate for a shoot (run by kubectl)",
		Long: `credential is a credential plugin of kubectl (client.authentication.k8s.io/v1), for kubeconfigs of
"trellisctl kubeconfig --exec" and "--all". It asks the garden for a client certificate of the shoot that kubectl
names, and keeps it in a folder that only its user may read until two minutes before it ends. Removing that folder is
safe.`,
		Args: noArguments, Hidden: true,
		RunE: func(command *cobra.Command, _ []string) error {
			asked, err := askedFor(os.Getenv(execInfoEnv))
			if err != nil {
				return err
			}
			// The target of the terminal is not asked: kubectl says which cluster is meant.
			session, err := c.gardenOf(asked)
			if err != nil {
				return err
			}
			if dir == "" {
				if dir, err = credentialDir(); err != nil {
					return err
				}
			}
			cache, err := certcache.Open(dir, ownedByUser)
			if err != nil {
				return err
			}
			answer, err := session.credential(command.Context(), asked, cache, AccessLevel(c.level), c.expiration,
				time.Now())
			if err != nil {
				return err
			}
			return json.NewEncoder(command.OutOrStdout()).Encode(answer)
		},
	}
	c.accessFlags(command)
	command.Flags().StringVar(&dir, "cache-dir", "",
		"where certificates are kept (default: trellisctl/credentials in the user's folder for caches)")
	return command
}

func credentialDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w; say with --cache-dir where certificates may be kept", err)
	}
	return filepath.Join(dir, "trellisctl", "credentials"), nil
}

// askedCluster is what kubectl asks about.
type askedCluster struct {
	execCluster
	// authority is that of the cluster's server: another one is another cluster.
	authority []byte
}

// askedFor reads what kubectl says.
func askedFor(info string) (askedCluster, error) {
	if info == "" {
		return askedCluster{}, errors.New("there is no $" + execInfoEnv + ": kubectl runs this command, for a " +
			"kubeconfig that `trellisctl kubeconfig --exec` has written")
	}
	var request clientauthenticationv1.ExecCredential
	if err := json.Unmarshal([]byte(info), &request); err != nil {
		return askedCluster{}, fmt.Errorf("$%s: %w", execInfoEnv, err)
	}
	if request.APIVersion != execAPIVersion || request.Kind != "ExecCredential" {
		return askedCluster{}, fmt.Errorf("$%s: want ExecCredential of %s, not %s of %s; write the kubeconfig anew "+
			"with `trellisctl kubeconfig --exec`", execInfoEnv, execAPIVersion, request.Kind, request.APIVersion)
	}
	if request.Spec.Cluster == nil {
		return askedCluster{}, fmt.Errorf("$%s: spec.cluster: missing; the kubeconfig must have "+
			"provideClusterInfo: true", execInfoEnv)
	}
	asked := askedCluster{authority: request.Spec.Cluster.CertificateAuthorityData}
	if raw := request.Spec.Cluster.Config.Raw; len(raw) > 0 {
		if err := json.Unmarshal(raw, &asked.execCluster); err != nil {
			return askedCluster{}, fmt.Errorf("$%s: spec.cluster.config: %w", execInfoEnv, err)
		}
	}
	if asked.ShootRef.Namespace == "" || asked.ShootRef.Name == "" {
		return askedCluster{}, fmt.Errorf("$%s: spec.cluster.config: shootRef must have namespace and name; the "+
			"cluster's extension %s in the kubeconfig says them", execInfoEnv, execExtension)
	}
	return asked, nil
}

// gardenOf connects to the garden that the flags name, or else the kubeconfig. They must be one.
func (c *cli) gardenOf(asked askedCluster) (*Session, error) {
	config, err := LoadConfig(c.configPath)
	if err != nil {
		return nil, err
	}
	name := c.flags.Garden
	if name == "" {
		name = asked.GardenClusterIdentity
	}
	session, err := Connect(config, Target{Garden: name})
	if err != nil {
		return nil, err
	}
	garden := session.garden
	if told := asked.GardenClusterIdentity; told != "" && told != garden.Identity && told != garden.Name {
		return nil, fmt.Errorf("the kubeconfig is for a shoot of garden %q, and %s has garden %s with identity %q; "+
			"write the kubeconfig anew", told, config.path, garden.Name, garden.Identity)
	}
	return session, nil
}

// credential is the answer to kubectl, from the cache if that has it.
func (s *Session) credential(ctx context.Context, asked askedCluster, cache *certcache.Cache, level AccessLevel,
	expiration time.Duration, now time.Time) (*clientauthenticationv1.ExecCredential, error) {
	key := certcache.Key(s.garden.Name, s.garden.Identity, s.garden.Kubeconfig, s.garden.Context,
		asked.ShootRef.Namespace, asked.ShootRef.Name, string(level), string(asked.authority))
	certificate, found, err := cache.Get(key, now)
	if err != nil {
		return nil, err
	}
	if !found {
		if certificate, err = s.clientCertificate(ctx, asked.ShootRef, level, expiration); err != nil {
			return nil, err
		}
		if err := cache.Put(key, certificate, now); err != nil {
			return nil, err
		}
	}
	end, err := certificate.NotAfter()
	if err != nil {
		return nil, err
	}
	// kubectl asks again when it is time for another one.
	if early := end.Add(-certcache.Margin); early.After(now) {
		end = early
	}
	return &clientauthenticationv1.ExecCredential{
		TypeMeta: metav1.TypeMeta{APIVersion: execAPIVersion, Kind: "ExecCredential"},
		Status: &clientauthenticationv1.ExecCredentialStatus{
			ExpirationTimestamp:   &metav1.Time{Time: end},
			ClientCertificateData: certificate.Certificate, ClientKeyData: certificate.Key,
		},
	}, nil
}

// clientCertificate asks the garden for one.
func (s *Session) clientCertificate(ctx context.Context, ref shootRef, level AccessLevel,
	expiration time.Duration) (certcache.Certificate, error) {
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: ref.Namespace, Name: ref.Name}}
	kubeconfig, err := s.ShootKubeconfig(ctx, shoot, level, expiration)
	if err != nil {
		return certcache.Certificate{}, err
	}
	var certificate certcache.Certificate
	if current := kubeconfig.Contexts[kubeconfig.CurrentContext]; current != nil {
		if user := kubeconfig.AuthInfos[current.AuthInfo]; user != nil {
			certificate.Certificate = string(user.ClientCertificateData)
			certificate.Key = string(user.ClientKeyData)
		}
	}
	if _, err := certificate.NotAfter(); err != nil {
		return certcache.Certificate{}, fmt.Errorf("the garden's kubeconfig of shoot %s/%s has no client certificate "+
			"that can be used: %w", ref.Namespace, ref.Name, err)
	}
	return certificate, nil
}
