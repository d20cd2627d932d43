package landscape

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/images"
)

const (
	// localProvider is the extension with the one infrastructure that a landscape runs on, in its folder and its image.
	// A landscape may have other providers beside it, for clouds elsewhere.
	localProvider = "provider-local"
	localCloudNS  = "local-cloud"
	// cloudEndpoint is the API of the local cloud, dnsCredentials and backupCredentials the Secrets with access to its
	// DNS zone and to its buckets.
	cloudEndpoint     = "http://" + nodeIP + ":8090"
	dnsCredentials    = "dns-local"
	backupCredentials = "backup-local"
	// localCloudPlugin attaches the pods of some namespaces to networks of the local cloud, and passes all others on.
	localCloudPlugin = "local-cloud"
)

// cloudPhase installs the infrastructure of the landscape: networks, names and volumes.
func cloudPhase(ctx context.Context, r *run) error {
	dir, err := r.localProviderDir()
	if err != nil {
		return err
	}
	chart, err := helm.LoadFS(os.DirFS(filepath.Join(r.Root, dir, "charts")), "local-cloud")
	if err != nil {
		return err
	}
	image, err := r.image(localProvider)
	if err != nil {
		return err
	}
	token, err := r.cloudToken()
	if err != nil {
		return err
	}
	c, err := r.runtime()
	if err != nil {
		return err
	}
	several := r.state.nodes() > 1
	if err := clearVolumeClass(ctx, c.client, several); err != nil {
		return err
	}
	err = r.installChart(ctx, helm.Release{
		Namespace: localCloudNS, Name: "local-cloud", Chart: chart,
		Values: map[string]any{
			"image": image, "token": string(token), "nodeAddress": nodeIP, "zone": domain, "records": gardenRecords(),
			"otherNodes": several, "bastions": bastionRange.String(),
		},
	})
	if err != nil || !several {
		return err
	}
	// An older cloud may have made some in the meantime.
	return bindVolumes(ctx, c.client)
}

// localProviderDir is the folder of localProvider.
func (l *Landscape) localProviderDir() (string, error) {
	i := slices.IndexFunc(l.Extensions, func(e images.Extension) bool { return e.Name == localProvider })
	if i < 0 {
		return "", fmt.Errorf("finding the infrastructure: it is that of %s, which is not among the extensions",
			localProvider)
	}
	return l.Extensions[i].Dir, nil
}

// cloudToken is what clients of the local cloud present.
func (r *run) cloudToken() ([]byte, error) {
	return r.keep("cloud-token", func() ([]byte, error) { return randomHex(16), nil })
}

// storeCloudAccess adds access to the local cloud to the credentials of the DNS zone and of buckets: seeds other than
// the first do not run beside the cloud.
func (r *run) storeCloudAccess(ctx context.Context, garden *cluster) error {
	token, err := r.cloudToken()
	if err != nil {
		return err
	}
	access := map[string][]byte{
		"user": []byte("seed-local"), "endpoint": []byte(cloudEndpoint), "token": token,
	}
	for _, name := range []string{dnsCredentials, backupCredentials} {
		if err := writeSecret(ctx, garden.client, gardenNS, name, access); err != nil {
			return err
		}
	}
	return nil
}

// applyCloudProfile applies the cloud profile with the machine image that was built here for every image that it
// offers.
func (r *run) applyCloudProfile(ctx context.Context, garden *cluster) error {
	const path = "landscape/local/garden/cloudprofile.yaml"
	image, err := r.image("machine-debian")
	if err != nil {
		return err
	}
	content, err := readYAML(filepath.Join(r.Root, path))
	if err != nil {
		return err
	}
	profile := &unstructured.Unstructured{Object: content}
	if err := mapMachineImages(profile, image); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return garden.applyPatiently(ctx, profile)
}

// mapMachineImages writes the provider's part of a cloud profile: which container image stands for a machine image.
func mapMachineImages(profile *unstructured.Unstructured, container string) error {
	offered, _, err := unstructured.NestedSlice(profile.Object, "spec", "machineImages")
	if err != nil {
		return err
	}
	var mapped []any
	for _, entry := range offered {
		image, _ := entry.(map[string]any)
		versions, _, err := unstructured.NestedSlice(image, "versions")
		if err != nil {
			return err
		}
		var mappedVersions []any
		for _, entry := range versions {
			version, _ := entry.(map[string]any)
			mappedVersions = append(mappedVersions, map[string]any{"version": version["version"], "image": container})
		}
		mapped = append(mapped, map[string]any{"name": image["name"], "versions": mappedVersions})
	}
	return unstructured.SetNestedMap(profile.Object, map[string]any{
		"apiVersion": "local.provider.extensions.gardener.cloud/v1alpha1", "kind": "CloudProfileConfig",
		"machineImages": mapped,
	}, "spec", "providerConfig")
}
