package main

import (
	"context"
	"fmt"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/trellis-garden/trellis/extensions/pkg/command"
	"github.com/trellis-garden/trellis/extensions/pkg/terraform"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/backup"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/bastion"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/controlplane"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/dnsrecord"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/infrastructure"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/controller/worker"
	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/credentials"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

type controllersFlags struct {
	namespace, endpoint, tokenNamespace, tokenName, zone, image, machineControllerManager, volumesDir string
	nameservers                                                                                       []string
	terraform                                                                                         terraform.Options
}

func controllersCommand() *cobra.Command {
	flags := controllersFlags{}
	options := command.NewOptions()
	cmd := &cobra.Command{
		Use:   "controllers",
		Short: "Run the extension's controllers for a seed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			scheme, err := command.Scheme(machinev1alpha1.AddToScheme)
			if err != nil {
				return err
			}
			flags.namespace = options.Namespace
			return options.Run(cmd.Context(), "provider-local", scheme, flags.setup)
		},
	}
	f := cmd.Flags()
	options.AddFlags(f)
	f.StringVar(&flags.endpoint, "cloud-endpoint", "http://172.18.0.2:8090",
		"URL of the local cloud, for objects whose Secret names none")
	f.StringVar(&flags.tokenNamespace, "cloud-token-namespace", "local-cloud",
		"namespace of the Secret with the token for it")
	f.StringVar(&flags.tokenName, "cloud-token-secret", "local-cloud", "name of that Secret; its key is token")
	f.StringVar(&flags.zone, "zone", "local.trellis.garden", "DNS zone of the local cloud")
	f.StringSliceVar(&flags.nameservers, "machine-nameservers", []string{"172.18.0.2"}, "name servers of the machines")
	f.StringVar(&flags.volumesDir, "machine-volumes-dir", "",
		"folder of the seed's nodes for volumes of shoots, as the local cloud has it (its --state-dir, and "+
			"machine-volumes below it); without it shoots have none")
	f.StringVar(&flags.image, "image", "",
		"image of this program, for the machine driver (default: from the image vector)")
	f.StringVar(&flags.machineControllerManager, "machine-controller-manager-image", "",
		"image of machine-controller-manager (default: from the image vector)")
	f.StringVar(&flags.terraform.Binary, "terraform", terraform.Binary, "program terraform or tofu")
	f.StringVar(&flags.terraform.ProvidersDir, "terraform-providers", terraform.ProvidersDir,
		"filesystem mirror with the provider")
	return cmd
}

func (f *controllersFlags) setup(_ context.Context, mgr manager.Manager) error {
	images, err := imagevector.Load()
	if err != nil {
		return err
	}
	if err := f.completeImages(images); err != nil {
		return err
	}
	source := credentials.Source{
		Reader:   mgr.GetAPIReader(),
		Endpoint: f.endpoint,
		Secret:   client.ObjectKey{Namespace: f.tokenNamespace, Name: f.tokenName},
	}
	adders := []func() error{
		func() error {
			return infrastructure.Add(mgr,
				infrastructure.Options{Credentials: source, Nameservers: f.nameservers, Terraform: f.terraform})
		},
		func() error { return controlplane.Add(mgr) },
		func() error { return dnsrecord.Add(mgr, source, f.zone) },
		func() error { return backup.Add(mgr, source, f.namespace) },
		func() error { return bastion.Add(mgr, source) },
		func() error {
			return worker.Add(mgr, worker.Options{
				MachineControllerManager: f.machineControllerManager,
				Image:                    f.image,
				MachineImage:             machineImages(images),
				VolumesDir:               f.volumesDir,
			})
		},
	}
	for _, add := range adders {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
}

func (f *controllersFlags) completeImages(images imagevector.Vector) error {
	for name, target := range map[string]*string{
		"provider-local": &f.image, "machine-controller-manager": &f.machineControllerManager,
	} {
		if *target != "" {
			continue
		}
		image, err := images.Find(name)
		if err != nil {
			return err
		}
		*target = image.String()
	}
	return nil
}

// machineImages finds images that the CloudProfile does not map: machine-<name> in the image vector.
func machineImages(images imagevector.Vector) func(name, version string) (string, error) {
	return func(name, version string) (string, error) {
		image, err := images.Find("machine-"+name, imagevector.Tag(version))
		if err != nil {
			return "", fmt.Errorf("machine image %s %s: name its container image in providerConfig.machineImages of "+
				"the CloudProfile: %w", name, version, err)
		}
		return image.String(), nil
	}
}
