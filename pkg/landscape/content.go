package landscape

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/charts"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/images"
	"github.com/trellis-garden/trellis/pkg/manifests"
)

const (
	demoNS = "garden-" + demoProject
	core   = gardencorev1beta1.GroupName
)

func coreKind(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: core, Version: "v1beta1", Kind: kind}
}

// keep returns a file of the state folder, made when it is missing.
func (r *run) keep(name string, create func() ([]byte, error)) ([]byte, error) {
	data, err := os.ReadFile(r.path(name))
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if data, err = create(); err != nil {
		return nil, err
	}
	return data, replaceFile(r.path(name), data, 0o600)
}

func randomHex(bytes int) []byte {
	data := make([]byte, bytes)
	// crypto/rand never fails.
	_, _ = rand.Read(data)
	return []byte(hex.EncodeToString(data))
}

func adminKubeconfig(server, tlsServerName string, ca []byte, certificate *corev1.Secret) ([]byte, error) {
	return encodeKubeconfig(
		clientcmdapi.Cluster{Server: server, TLSServerName: tlsServerName, CertificateAuthorityData: ca},
		clientcmdapi.AuthInfo{
			ClientCertificateData: certificate.Data["tls.crt"], ClientKeyData: certificate.Data["tls.key"],
		},
	)
}

// contentPhase fills the garden: cloud profile, project, credentials, extensions.
func contentPhase(ctx context.Context, r *run) error {
	garden, err := r.garden()
	if err != nil {
		return err
	}
	if err := r.registerExtensions(ctx, garden); err != nil {
		return err
	}
	if err := r.applyCloudProfile(ctx, garden); err != nil {
		return err
	}
	if err := bindOperators(ctx, garden); err != nil {
		return err
	}
	if err := r.applyFile(ctx, garden, "landscape/local/garden/project.yaml"); err != nil {
		return err
	}
	r.Step("waiting for project %s", demoProject)
	err = await(ctx, func(ctx context.Context) (string, error) {
		project, err := garden.get(ctx, coreKind("Project"), "", demoProject)
		if err != nil {
			return err.Error(), nil
		}
		if phase, _, _ := unstructured.NestedString(project.Object, "status", "phase"); phase != "Ready" {
			return "project " + demoProject + " is not ready, phase " + phase, nil
		}
		return "", nil
	})
	if err != nil {
		return err
	}
	if err := r.applyFile(ctx, garden, "landscape/local/garden/credentials.yaml"); err != nil {
		return err
	}
	return r.storeCloudAccess(ctx, garden)
}

func (r *run) applyFile(ctx context.Context, c *cluster, path string) error {
	data, err := os.ReadFile(filepath.Join(r.Root, path))
	if err != nil {
		return err
	}
	objects, err := manifests.Decode(data)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, object := range objects {
		if err := c.applyPatiently(ctx, object); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// registerExtensions tells the garden of every extension of the landscape.
func (r *run) registerExtensions(ctx context.Context, garden *cluster) error {
	for _, extension := range r.Extensions {
		r.Step("extension %s", extension.Name)
		objects, err := r.registrationOf(extension)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := garden.applyPatiently(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// registrationOf is an extension's ControllerDeployment, with its chart and image, and its ControllerRegistration.
func (r *run) registrationOf(extension images.Extension) ([]*unstructured.Unstructured, error) {
	chart, err := r.chartOfExtension(extension)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(r.Root, extension.Dir, "example", "*.yaml"))
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, err := manifests.Decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, object := range objects {
			if object.GetKind() == "ControllerDeployment" {
				object.Object["providerConfig"] = chart
			}
		}
		all = append(all, objects...)
	}
	return all, nil
}

// chartOfExtension packs the extension's chart and gives it values; it returns the providerConfig of a
// ControllerDeployment.
func (r *run) chartOfExtension(extension images.Extension) (map[string]any, error) {
	archive, err := helm.Pack(os.DirFS(filepath.Join(r.Root, extension.Dir, "charts")), extension.Name)
	if err != nil {
		return nil, err
	}
	image, err := r.image(extension.Name)
	if err != nil {
		return nil, err
	}
	overwrite, err := r.builtVector()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"chart":  base64.StdEncoding.EncodeToString(archive),
		"values": map[string]any{"image": image, "imageVectorOverwrite": overwrite},
	}, nil
}

// seedPhase makes the runtime cluster a seed: it installs gardenlet, which joins the garden by a bootstrap token.
func seedPhase(ctx context.Context, r *run) error {
	garden, err := r.garden()
	if err != nil {
		return err
	}
	bootstrap, err := r.bootstrapKubeconfig(ctx, garden)
	if err != nil {
		return err
	}
	if err := r.storeSeedAccess(ctx, garden); err != nil {
		return err
	}
	overwrite, err := r.builtVector()
	if err != nil {
		return err
	}
	image, err := r.image("gardenlet")
	if err != nil {
		return err
	}
	config, err := readYAML(filepath.Join(r.Root, "landscape/local/gardenlet.yaml"))
	if err != nil {
		return err
	}
	if err := setZones(config, r.state.nodes()); err != nil {
		return err
	}
	chart, err := helm.LoadFS(charts.FS, "gardenlet")
	if err != nil {
		return err
	}
	err = r.installChart(ctx, helm.Release{
		Namespace: gardenNS, Name: "gardenlet", Chart: chart,
		Values: map[string]any{
			"image": image, "bootstrapKubeconfig": string(bootstrap), "imageVectorOverwrite": overwrite,
			"config": config, "replicaCount": gardenletReplicas(r.state.nodes()),
		},
	})
	if err != nil {
		return err
	}
	r.Step("waiting for the seed")
	return await(ctx, func(ctx context.Context) (string, error) {
		seed, err := garden.get(ctx, coreKind("Seed"), "", seedName)
		if err != nil {
			return err.Error(), nil
		}
		for _, kind := range []string{"GardenletReady", "SeedSystemComponentsHealthy"} {
			if status, message := condition(seed, kind); status != "True" {
				r.reached(kind + " " + status)
				r.show("waiting for the seed: " + kind + ": " + message)
				return fmt.Sprintf("seed %s: %s: %s", seedName, kind, message), nil
			}
		}
		return "", nil
	})
}

// gardenletReplicas are as many as the controllers of the garden have: the seed's gardenlet outlasts what they do.
func gardenletReplicas(nodes int) int64 {
	return int64(gardenAvailability(nodes).Replicas(component.Pair))
}

// setZones gives the seed of a gardenlet's configuration the zones of the runtime cluster's nodes, if it has several.
func setZones(config map[string]any, nodes int) error {
	zones := zonesOf(nodes)
	if zones == nil {
		return nil
	}
	return unstructured.SetNestedStringSlice(config, zones, "seedConfig", "spec", "provider", "zones")
}

func readYAML(path string) (map[string]any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return values, nil
}

// bootstrapKubeconfig makes a bootstrap token in the garden for gardenlet's first certificate. The token is kept, so
// that another run changes nothing; it ends by itself after a day, and is then made anew.
func (r *run) bootstrapKubeconfig(ctx context.Context, garden *cluster) ([]byte, error) {
	token, err := r.keep("bootstrap-token", func() ([]byte, error) { return randomHex(11), nil })
	if err != nil {
		return nil, err
	}
	id, secret := string(token[:6]), string(token[6:22])
	data := map[string][]byte{
		"token-id": []byte(id), "token-secret": []byte(secret), "usage-bootstrap-authentication": []byte("true"),
		"expiration":  []byte(time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)),
		"description": []byte("gardenlet of seed " + seedName),
	}
	object := map[string]any{}
	for key, value := range data {
		object[key] = string(value)
	}
	err = garden.applyPatiently(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "bootstrap.kubernetes.io/token",
		"metadata": map[string]any{
			"namespace": systemNS, "name": seedmanagementv1alpha1.BootstrapTokenSecretPrefix + id,
			"labels": map[string]any{seedmanagementv1alpha1.BootstrapSeedLabel: seedName},
		},
		"stringData": object,
	}})
	if err != nil {
		return nil, err
	}
	return encodeKubeconfig(
		clientcmdapi.Cluster{Server: gardenServer, CertificateAuthorityData: garden.config.CAData},
		clientcmdapi.AuthInfo{Token: id + "." + secret},
	)
}

// storeSeedAccess keeps the operators' access to the seed where command line clients look for it.
func (r *run) storeSeedAccess(ctx context.Context, garden *cluster) error {
	kubeconfig, err := os.ReadFile(r.RuntimeKubeconfig())
	if err != nil {
		return err
	}
	if err := await(ctx, func(ctx context.Context) (string, error) {
		if err := garden.client.Get(ctx, client.ObjectKey{Name: gardenNS}, &corev1.Namespace{}); err != nil {
			return err.Error(), nil
		}
		return "", nil
	}); err != nil {
		return err
	}
	return writeSecret(ctx, garden.client, gardenNS, seedName+".login", map[string][]byte{"kubeconfig": kubeconfig})
}

var demoShoots = []string{"member1", "member2", "fleet"}

// shootsPhase creates the shoots of the tour and waits for all of them.
func shootsPhase(ctx context.Context, r *run) error {
	garden, err := r.garden()
	if err != nil {
		return err
	}
	for _, name := range demoShoots {
		if err := r.applyFile(ctx, garden, "landscape/local/examples/shoot-"+name+".yaml"); err != nil {
			return err
		}
	}
	return await(ctx, func(ctx context.Context) (string, error) {
		var waiting []string
		for _, name := range demoShoots {
			shoot, err := garden.get(ctx, coreKind("Shoot"), demoNS, name)
			if err != nil {
				waiting = append(waiting, name+": "+err.Error())
				continue
			}
			r.reached(name + " " + shootMilestone(shoot))
			if reason := shootUnfinished(shoot); reason != "" {
				waiting = append(waiting, name+" "+reason)
			}
		}
		if len(waiting) > 0 {
			r.show("waiting for " + strings.Join(waiting, ", "))
		}
		return strings.Join(waiting, "; "), nil
	})
}

// shootMilestone says how far a shoot is.
func shootMilestone(shoot *unstructured.Unstructured) string {
	operation, _, _ := unstructured.NestedMap(shoot.Object, "status", "lastOperation")
	unmet := len(unmetConditions(shoot))
	return fmt.Sprintf("%v at %v%%, %d conditions are not met", operation["state"], operation["progress"], unmet)
}

// shootUnfinished says what a shoot lacks, or "". When its operation has succeeded, system components may still be on
// their way: metrics-server measures for a while before it serves its API.
func shootUnfinished(shoot *unstructured.Unstructured) string {
	operation, _, _ := unstructured.NestedMap(shoot.Object, "status", "lastOperation")
	observed, _, _ := unstructured.NestedInt64(shoot.Object, "status", "observedGeneration")
	if operation["state"] == "Succeeded" && observed == shoot.GetGeneration() {
		return strings.Join(unmetConditions(shoot), ", ")
	}
	if operation == nil {
		return "waits for a seed"
	}
	reason := fmt.Sprintf("%v%% %v", operation["progress"], operation["state"])
	if operation["state"] == "Error" || operation["state"] == "Failed" || operation["state"] == "Pending" {
		reason += fmt.Sprintf(" (%v)", operation["description"])
	}
	return reason
}
