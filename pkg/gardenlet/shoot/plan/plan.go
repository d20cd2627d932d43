// Package plan decides what a shoot is to be, once, from the objects in the garden. It is pure: a Plan is a function
// of Inputs, without clients and clocks, and its golden files show what comes of them.
package plan

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/component/kubeapiserver"
	"github.com/trellis-garden/trellis/pkg/gardenlet/config"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/components"
	"github.com/trellis-garden/trellis/pkg/imagevector"
)

const (
	// ClusterDomain is the DNS domain of services in every shoot.
	ClusterDomain = "cluster.local"
	// advertiseAddress is where the Service kubernetes in a shoot leads: apiserver-proxy listens there on every node.
	advertiseAddress = "240.0.0.1"
	// defaultServices is the network of services of workerless shoots where nobody asks for another: no packet ever
	// has one of its addresses.
	defaultServices = "100.64.0.0/13"
	// dnsServiceIndex is the place of the cluster's DNS in the services' network.
	dnsServiceIndex = 10
)

// Plan holds every decision about a shoot, made once from the objects in the garden. Tasks read it; nothing changes it.
type Plan struct {
	Identity
	// ClusterIdentity is unique among all clusters.
	ClusterIdentity string

	// Hibernation is how awake the shoot is to be.
	Hibernation Hibernation
	// SkipReadiness leaves out the checks that nodes are reached and run their configuration.
	SkipReadiness bool
	// Purpose of the shoot; nil if nobody says.
	Purpose *gardencorev1beta1.ShootPurpose
	// Workerless shoots have no nodes, and nothing that only nodes need.
	Workerless bool
	// ProviderType, Region and their settings.
	ProviderType, Region                       string
	InfrastructureConfig, ControlPlaneProvider *runtime.RawExtension
	// Credentials is the Secret, InternalSecret or WorkloadIdentity of the garden with credentials for the
	// infrastructure.
	Credentials *corev1.ObjectReference
	// References are objects of the garden that the shoot's extensions use.
	References []gardencorev1beta1.NamedResourceReference

	// KubernetesVersion of the control plane, without "v".
	KubernetesVersion string
	// Values are those of all components that the shoot has, without keys and certificates.
	Values components.Values
	// FilesDigest identifies the files of the garden that settings of kube-apiserver come from; empty without any.
	FilesDigest string
	// Restore is the point in time that etcd-main restores, if the seed has a store.
	Restore Restore
	// Rotation says which credentials are being replaced.
	Rotation Rotation
	// Kubernetes are the user's settings.
	Kubernetes gardencorev1beta1.Kubernetes
	// Networks of the shoot.
	Networks Networks
	// Internal and External are the DNS records of the API server; nil if there is to be none.
	Internal, External *Record
	// Addresses are what users are told.
	Addresses []gardencorev1beta1.ShootAdvertisedAddress
	// Gateway is the address of the seed.
	Gateway config.Gateway

	// Extensions of kind Extension, in the order of their types.
	Extensions []Extension
	// Pools of workers.
	Pools []Pool
	// Components are the names of what the seed runs for the shoot, and of what resource-manager keeps in it.
	Components []string
	// Authorities are the names of the certificate authorities that these need.
	Authorities []string
	// SSHAccess says whether users may log in to machines.
	SSHAccess bool
	// Seed is what the seed asks of every control plane.
	Seed Seed
	// SystemPoolTolerations let system components onto tainted pools.
	SystemPoolTolerations []corev1.Toleration
	// Images by name.
	Images map[string]string
}

// Networks are the networks of the shoot.
type Networks struct {
	// Type and ProviderConfig of the network plugin.
	Type           string
	ProviderConfig *runtime.RawExtension
	// Pods, Services and Nodes as CIDRs. Nodes is empty if the infrastructure chooses them.
	Pods, Services, Nodes []string
	// IPFamilies in the order of preference.
	IPFamilies []gardencorev1beta1.IPFamily
	// APIServer is the address of the Service kubernetes, DNS that of the cluster's DNS.
	APIServer, DNS string
}

// Record is a DNS record.
type Record struct {
	// Name of the DNSRecord object and of its Secret.
	Name, SecretName string
	// Hostname that the record is for.
	Hostname string
	// Type of the DNS provider, and its zone if it is known.
	Type string
	Zone *string
	// Credentials is the object of the garden that holds them.
	Credentials corev1.ObjectReference
	// RecordType and Value of the record.
	RecordType extensionsv1alpha1.DNSRecordType
	Value      string
}

// New decides. Errors are mistakes in the objects of the garden.
func New(in *Inputs, gateway config.Gateway, images imagevector.Vector) (*Plan, error) {
	shoot := in.Shoot
	p := &Plan{
		Identity:             NewIdentity(in.ProjectName, shoot),
		SkipReadiness:        shoot.Annotations[gardencorev1beta1.ShootSkipReadiness] == "true",
		Workerless:           len(shoot.Spec.Provider.Workers) == 0,
		ProviderType:         shoot.Spec.Provider.Type,
		Region:               shoot.Spec.Region,
		InfrastructureConfig: shoot.Spec.Provider.InfrastructureConfig,
		ControlPlaneProvider: shoot.Spec.Provider.ControlPlaneConfig,
		Credentials:          in.Credentials,
		References:           shoot.Spec.Resources,
		KubernetesVersion:    shoot.Spec.Kubernetes.Version,
		Kubernetes:           shoot.Spec.Kubernetes,
		Gateway:              gateway,
		Hibernation:          planHibernation(shoot, in.Asleep),
	}
	p.Seed = planSeed(&in.Seed.Spec)
	p.planStore(in)
	p.Purpose = shoot.Spec.Purpose
	p.Components = components.Names(slices.Concat(components.ControlPlane, components.System), &shoot.Spec)
	p.Authorities = components.Authorities(&shoot.Spec)
	p.SSHAccess = !p.Workerless && gardencorev1beta1.SSHAccessEnabled(&shoot.Spec)
	p.ClusterIdentity = ptr.Deref(shoot.Status.ClusterIdentity,
		fmt.Sprintf("%s-%s-%s", p.Namespace, p.UID, in.GardenIdentity))
	for _, step := range []func(*Inputs) error{
		p.planNetworks, p.planDNS, p.planExtensions,
		func(in *Inputs) error { return p.planImages(images) },
		func(in *Inputs) error { return p.planPools(in, images) },
		p.planComponents, p.planAPIServer,
	} {
		if err := step(in); err != nil {
			return nil, &ConfigurationError{Err: err}
		}
	}
	return p, nil
}

// Has says whether the shoot has a component.
func (p *Plan) Has(component string) bool { return slices.Contains(p.Components, component) }

// planNetworks decides about the networks: the shoot's own, else the seed's defaults for shoots.
func (p *Plan) planNetworks(in *Inputs) error {
	var pods, services, nodes *string
	if defaults := in.Seed.Spec.Networks.ShootDefaults; defaults != nil {
		pods, services = defaults.Pods, defaults.Services
	}
	p.Networks.IPFamilies = []gardencorev1beta1.IPFamily{gardencorev1beta1.IPFamilyIPv4}
	if networking := in.Shoot.Spec.Networking; networking != nil {
		p.Networks.Type = ptr.Deref(networking.Type, "")
		p.Networks.ProviderConfig = networking.ProviderConfig
		pods, services, nodes = cmp.Or(networking.Pods, pods), cmp.Or(networking.Services, services), networking.Nodes
		if len(networking.IPFamilies) > 0 {
			p.Networks.IPFamilies = networking.IPFamilies
		}
	}
	if services == nil && p.Workerless {
		services = new(defaultServices)
	}
	if services == nil {
		return fmt.Errorf("spec.networking.services is not set and the seed has no default for it")
	}
	p.Networks.Services = []string{*services}
	var err error
	if p.Networks.APIServer, err = kubeapiserver.ServiceIP(*services, 1); err != nil {
		return fmt.Errorf("spec.networking.services: %w", err)
	}
	if p.Networks.DNS, err = kubeapiserver.ServiceIP(*services, dnsServiceIndex); err != nil {
		return fmt.Errorf("spec.networking.services: %w", err)
	}
	if p.Workerless {
		return nil
	}
	if pods == nil {
		return fmt.Errorf("spec.networking.pods is not set and the seed has no default for it")
	}
	p.Networks.Pods = []string{*pods}
	if nodes != nil {
		p.Networks.Nodes = []string{*nodes}
	}
	for _, cidr := range append(slices.Clone(p.Networks.Pods), p.Networks.Nodes...) {
		if _, err := netip.ParsePrefix(cidr); err != nil {
			return fmt.Errorf("spec.networking: %w", err)
		}
	}
	return nil
}

// planImages resolves the images of all components, with the shoot's Kubernetes version where the vector gives no tag.
func (p *Plan) planImages(images imagevector.Vector) error {
	p.Images = map[string]string{}
	for _, name := range components.Images() {
		options := []imagevector.FindOption{}
		if strings.HasPrefix(name, "kube-") {
			options = append(options, imagevector.Version(p.KubernetesVersion))
		}
		image, err := images.Find(name, options...)
		if err != nil {
			return err
		}
		p.Images[name] = image.String()
	}
	return nil
}
