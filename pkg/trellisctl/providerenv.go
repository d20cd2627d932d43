package trellisctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/certcache"
	"github.com/trellis-garden/trellis/pkg/trellisctl/providerenv"
	"github.com/trellis-garden/trellis/pkg/trellisctl/shell"
)

func (c *cli) providerEnvCommand() *cobra.Command {
	var output formatFlag
	var unset bool
	command := &cobra.Command{
		Use:   "provider-env bash|zsh|fish|powershell",
		Short: "Print what gives a cloud's tools the shoot's credentials",
		Long: `provider-env prints environment variables with the credentials by which the targeted shoot has its machines
made. It needs the right to read the Secret of its CredentialsBinding.

Known types of providers are alicloud, aws, azure, gcp, hcloud, openstack and stackit. For others, and instead of what
is built in for these, it fills the template ~/.garden/templates/TYPE.tmpl, in the language of Go. There
.unsafeSecretData has the keys of the Secret, and {{ shellEscape .unsafeSecretData.key }} is the only way to print one;
quotes around it would undo what it does.`,
		Example: `  eval "$(trellisctl provider-env bash)"
  trellisctl provider-env fish | source
  eval "$(trellisctl provider-env bash --unset)"
  trellisctl provider-env -o json`,
		Args: optional(oneOfValidArgs), ValidArgs: shell.Names,
		RunE: func(command *cobra.Command, arguments []string) error {
			if (len(arguments) == 0) == !output.isDocument() {
				return errors.New("say either for which shell, as in `trellisctl provider-env bash`, or -o yaml or " +
					"-o json")
			}
			session, err := c.connect()
			if err != nil {
				return err
			}
			if output.isDocument() {
				variables, err := session.providerVariables(command.Context())
				if err != nil {
					return err
				}
				return output.print(command.OutOrStdout(), variables)
			}
			script, err := session.providerScript(command.Context(), shell.Shell(arguments[0]), unset)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(command.OutOrStdout(), script)
			return err
		},
	}
	output.flagFor(command, "yaml or json: the variables of a known provider, for programs", formatYAML, formatJSON)
	command.Flags().BoolVarP(&unset, "unset", "u", false, "remove the variables")
	return command
}

// providerScript is for eval. A template of the user's goes before what is built in.
func (s *Session) providerScript(ctx context.Context, sh shell.Shell, unset bool) (string, error) {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return "", err
	}
	providerType := shoot.Spec.Provider.Type
	text, path, err := providerTemplate(providerType)
	if err != nil {
		return "", err
	}
	if text == "" && !providerenv.Known(providerType) {
		return "", fmt.Errorf("shoot %s/%s has provider %s, whose tools are not known: write a template %s; `trellisctl "+
			"provider-env --help` says what it may use", shoot.Namespace, shoot.Name, providerType, path)
	}
	if text == "" && unset {
		return providerenv.Unset(providerenv.Names(providerType), sh)
	}
	credentials := map[string][]byte{}
	if !unset {
		if credentials, err = s.providerCredentials(ctx, shoot); err != nil {
			return "", err
		}
	}
	if text != "" {
		script, err := providerenv.Render(text, sh, providerenv.Data{
			ProviderType: providerType, Region: shoot.Spec.Region, Credentials: credentials, Unset: unset,
			ConfigDir: filepath.Join(SessionDir(), "provider"),
		})
		if err != nil {
			return "", fmt.Errorf("template %s: %w", path, err)
		}
		return script, nil
	}
	variables, err := providerenv.Variables(providerType, shoot.Spec.Region, credentials)
	if err != nil {
		return "", err
	}
	return providerenv.Script(variables, sh)
}

// providerVariables are those of a known provider, by name.
func (s *Session) providerVariables(ctx context.Context) (map[string]string, error) {
	shoot, err := s.Shoot(ctx)
	if err != nil {
		return nil, err
	}
	providerType := shoot.Spec.Provider.Type
	if !providerenv.Known(providerType) {
		return nil, fmt.Errorf("shoot %s/%s has provider %s, whose tools are not known: -o is for known ones",
			shoot.Namespace, shoot.Name, providerType)
	}
	credentials, err := s.providerCredentials(ctx, shoot)
	if err != nil {
		return nil, err
	}
	variables, err := providerenv.Variables(providerType, shoot.Spec.Region, credentials)
	if err != nil {
		return nil, err
	}
	result := map[string]string{}
	for _, variable := range variables {
		result[variable.Name] = variable.Value
	}
	return result, nil
}

// typePattern keeps a shoot from naming a file elsewhere.
var typePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

// providerTemplate is the user's template for a type of provider; none is no error.
func providerTemplate(providerType string) (text, path string, err error) {
	if !typePattern.MatchString(providerType) {
		return "", "", fmt.Errorf("%q is no type of provider", providerType)
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(home, ".garden", "templates", providerType+".tmpl")
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", path, nil
	}
	if err != nil {
		return "", path, err
	}
	// What is in it becomes commands of the user's shell.
	if !info.Mode().IsRegular() || certcache.OpenTo(info, 0o022) {
		return "", path, fmt.Errorf("%s must be a file that nobody but you may write to: `chmod go-w` it", path)
	}
	content, err := os.ReadFile(path)
	return string(content), path, err
}

// providerCredentials are those by which a shoot has its machines made.
func (s *Session) providerCredentials(ctx context.Context,
	shoot *gardencorev1beta1.Shoot) (map[string][]byte, error) {
	key, err := s.credentialsSecret(ctx, shoot)
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := s.client.Get(ctx, key, secret); err != nil {
		return nil, fmt.Errorf("the credentials of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
	}
	return secret.Data, nil
}

// credentialsSecret is the Secret that a shoot's binding names.
func (s *Session) credentialsSecret(ctx context.Context, shoot *gardencorev1beta1.Shoot) (client.ObjectKey, error) {
	if name := deref(shoot.Spec.CredentialsBindingName); name != "" {
		binding := &securityv1alpha1.CredentialsBinding{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, binding); err != nil {
			return client.ObjectKey{}, fmt.Errorf("CredentialsBinding of shoot %s/%s: %w", shoot.Namespace, shoot.Name,
				err)
		}
		ref := binding.CredentialsRef
		if ref.Kind != "Secret" {
			return client.ObjectKey{}, fmt.Errorf("CredentialsBinding %s/%s names a %s, of which tools of clouds get "+
				"nothing here: log in with an account of your own", shoot.Namespace, name, ref.Kind)
		}
		return client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, nil
	}
	if name := deref(shoot.Spec.SecretBindingName); name != "" {
		binding := &gardencorev1beta1.SecretBinding{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: shoot.Namespace, Name: name}, binding); err != nil {
			return client.ObjectKey{}, fmt.Errorf("SecretBinding of shoot %s/%s: %w", shoot.Namespace, shoot.Name, err)
		}
		return client.ObjectKey{Namespace: binding.SecretRef.Namespace, Name: binding.SecretRef.Name}, nil
	}
	return client.ObjectKey{}, fmt.Errorf("shoot %s/%s names no credentials (spec.credentialsBindingName)",
		shoot.Namespace, shoot.Name)
}
