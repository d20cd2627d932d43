// Package etcd deploys one etcd of a control plane: a StatefulSet that runs etcd-steward, the Service for its clients,
// and the headless Service for its members, of which a highly available control plane has three. Clients must present a
// certificate of the authority ca-etcd, members one of ca-etcd-peer. A single member listens for others, too, so that
// it serves on while they join it.
package etcd

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component"
	"github.com/trellis-garden/trellis/pkg/etcd/request"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

// Role tells what an etcd holds.
type Role string

const (
	// Main holds every object but events.
	Main Role = "main"
	// Events holds events, which may be lost.
	Events Role = "events"
)

const (
	// ClientPort is the port of the client Service.
	ClientPort int32 = 2379
	// HealthPort is the port of a pod for probes, metrics and the status of pkg/etcd/status, over plain HTTP.
	HealthPort int32 = 8080
	// mostMemory has room for large answers beside the index of a full database.
	mostMemory = "4Gi"
	// ClientSecretName is the configuration name of the client certificate that kube-apiserver presents.
	ClientSecretName = "etcd-client"
	// ContainerName is that of the container of etcd-steward.
	ContainerName = "etcd"

	volumeMount = "/var/etcd"
	dataDir     = volumeMount + "/data"
	backupMount = "/var/etcd-backup"
	pkiVolume   = "pki"
	pkiMount    = "/etc/etcd/pki"
	quotaFlag   = "--quota-backend-bytes="
)

// Values of an etcd.
type Values struct {
	// Role is required.
	Role Role
	// Image of etcd-steward.
	Image string
	// PriorityClass of the pods.
	PriorityClass string
	// Availability of the control plane. If it is high, the etcd has three members.
	Availability component.Availability
	// Replicas are as many as there are members, or 0 for a hibernated control plane. Data stays with 0.
	Replicas int32
	// StorageClass of the volume; nil for the seed's default.
	StorageClass *string
	// StorageCapacity of the volume; default 2Gi. It cannot be changed later.
	StorageCapacity resource.Quantity
	// MinimumCapacity is the least size of a volume in the seed; a volume that is there keeps its size.
	MinimumCapacity resource.Quantity
	// TrafficDistribution of the Service; empty for the seed's default.
	TrafficDistribution string
	// BackupDir is a directory on the seed's node below which snapshots are kept, in <namespace>/<name>. Empty: they
	// are kept on the etcd's own volume, which helps against damaged files but not against a lost volume. Only for an
	// etcd with a single member.
	BackupDir string
	// Store is the object store that keeps backups; nil for none.
	Store *Store
	// Restore is a point in time that is restored from the Store, once for each ID.
	Restore request.Restore
	// SnapshotPeriod is the time between full snapshots; default an hour for Main, six for Events.
	SnapshotPeriod time.Duration
	// SnapshotRetention is the number of full snapshots kept; default 12 for Main, 1 for Events.
	SnapshotRetention int
	// Quota limits the size of the database; default 8Gi for Main, 2Gi for Events, but not more than a third of the
	// volume.
	Quota resource.Quantity
	// MinAllowed are the least requests of the container.
	MinAllowed corev1.ResourceList
	// Reloads says that a single member serves on while its certificates change; see NewReloading, which sees to it.
	Reloads bool
}

// Name returns the name of the StatefulSet for a role.
func Name(role Role) string { return "etcd-" + string(role) }

// ClientServiceName returns the name of the Service that clients of a role's etcd use, on ClientPort.
func ClientServiceName(role Role) string { return Name(role) + "-client" }

func peerServiceName(role Role) string { return Name(role) + "-peer" }

// Labels are those of the pods of a role.
func Labels(role Role) map[string]string {
	return component.Labels("etcd-statefulset", string(role))
}

// Decide makes the values of the etcd with a role.
func Decide(role Role) func(component.Facts) Values {
	return func(f component.Facts) Values {
		return Values{
			Role: role, Image: f.Images["etcd-steward"], MinAllowed: minAllowed(f.Kubernetes.ETCD, role),
			Availability: f.Availability, Replicas: Members(f.Availability),
			MinimumCapacity: f.MinimumVolumeSize, TrafficDistribution: f.TrafficDistribution,
			PriorityClass: f.PriorityClass,
			Store:         storeOf(role, f), Restore: restoreOf(role, f),
		}.withDefaults()
	}
}

// minAllowed are the least requests that the user wants an etcd to have.
func minAllowed(user *gardencorev1beta1.ETCD, role Role) corev1.ResourceList {
	if user == nil {
		return nil
	}
	config := user.Main
	if role == Events {
		config = user.Events
	}
	if config == nil || config.Autoscaling == nil {
		return nil
	}
	return config.Autoscaling.MinAllowed
}

// New returns the component. The authorities ca-etcd and ca-etcd-peer must have been generated before Deploy.
func New(c client.Client, namespace string, manager secrets.Manager, values Values) component.Component {
	return &deployer{client: c, namespace: namespace, secrets: manager, values: values.withDefaults()}
}

func (v Values) withDefaults() Values {
	period, retention, quota := time.Hour, 12, resource.MustParse("8Gi")
	if v.Role == Events {
		period, retention, quota = 6*time.Hour, 1, resource.MustParse("2Gi")
	}
	if v.StorageCapacity.IsZero() {
		v.StorageCapacity = resource.MustParse("2Gi")
	}
	if v.StorageCapacity.Cmp(v.MinimumCapacity) < 0 {
		v.StorageCapacity = v.MinimumCapacity
	}
	if v.SnapshotPeriod == 0 {
		v.SnapshotPeriod = period
	}
	if v.SnapshotRetention == 0 {
		v.SnapshotRetention = retention
	}
	if v.Quota.IsZero() {
		v.Quota = *resource.NewQuantity(min(quota.Value(), databasePart(v.StorageCapacity)), resource.BinarySI)
	}
	return v
}

// databasePart is how much of a volume its database may take: beside it, there has to be room for the newest snapshot,
// which may be as large, for the write-ahead log, and for the copy that defragmentation makes.
func databasePart(capacity resource.Quantity) int64 { return capacity.Value() / 3 }

type deployer struct {
	client    client.Client
	namespace string
	secrets   secrets.Manager
	values    Values
	// ask is nil if the pod of a single member is replaced when its certificates change.
	ask Ask
}

// secretNames are the Secrets that the pods mount, and of one whose own Secrets change while it serves, that with the
// authorities of peers with which it began.
type secretNames struct{ ca, server, peerCA, peer, peersAtStart string }

// Deploy implements component.Deployer. Where a change takes several steps, it makes one of them.
func (d *deployer) Deploy(ctx context.Context) error {
	generated, err := d.generateSecrets(ctx)
	if err != nil {
		return err
	}
	present, err := d.present(ctx)
	if err != nil {
		return err
	}
	values := d.values
	if present != nil {
		values = values.withVolumeOf(present)
	}
	if values.Store, err = findStore(ctx, d.client, d.namespace, values.Store); err != nil {
		return err
	}
	step, err := nextStep(present, values, generated.names())
	if err != nil {
		return err
	}
	if err := d.keepOwn(ctx, present, step, generated); err != nil {
		return err
	}
	return d.apply(ctx, step)
}

// present returns the StatefulSet that is there; nil if there is none.
func (d *deployer) present(ctx context.Context) (*appsv1.StatefulSet, error) {
	present := &appsv1.StatefulSet{ObjectMeta: d.meta(Name(d.values.Role))}
	err := d.client.Get(ctx, client.ObjectKeyFromObject(present), present)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading StatefulSet %s: %w", client.ObjectKeyFromObject(present), err)
	}
	return present, nil
}

// withVolumeOf takes over the size of the volume of a StatefulSet, which cannot change, and keeps the database within
// it. A quota that is larger stays: a database that has grown beyond a smaller one would serve no writes.
func (v Values) withVolumeOf(present *appsv1.StatefulSet) Values {
	for _, claim := range present.Spec.VolumeClaimTemplates {
		if claim.Name == claimName(v.Role) {
			v.StorageCapacity = *claim.Spec.Resources.Requests.Storage()
			quota := max(quotaOf(present), min(v.Quota.Value(), databasePart(v.StorageCapacity)))
			v.Quota = *resource.NewQuantity(quota, resource.BinarySI)
		}
	}
	return v
}

// quotaOf returns the quota in the arguments of a StatefulSet's containers; 0 without one.
func quotaOf(present *appsv1.StatefulSet) int64 {
	for _, argument := range argumentsIn(present) {
		if value, found := strings.CutPrefix(argument, quotaFlag); found {
			quota, _ := strconv.ParseInt(value, 10, 64)
			return quota
		}
	}
	return 0
}

// argumentsIn are those of all containers of a StatefulSet.
func argumentsIn(present *appsv1.StatefulSet) []string {
	var all []string
	for _, container := range present.Spec.Template.Spec.Containers {
		all = append(all, container.Args...)
	}
	return all
}

func (d *deployer) generateSecrets(ctx context.Context) (g generated, err error) {
	if g.ca, err = component.CABundle(d.secrets, component.CAETCD); err != nil {
		return g, err
	}
	if g.server, err = d.secrets.Generate(ctx, serverCertificate(d.namespace, d.values.Role)); err != nil {
		return g, err
	}
	if g.peerCA, err = component.CABundle(d.secrets, component.CAETCDPeer); err != nil {
		return g, err
	}
	g.peer, err = d.secrets.Generate(ctx, peerCertificate(d.namespace, d.values.Role))
	return g, err
}

func serverCertificate(namespace string, role Role) secrets.CertificateConfig {
	service := ClientServiceName(role)
	return secrets.CertificateConfig{
		Name:       "etcd-server-" + string(role),
		CommonName: "etcd-server",
		CertType:   secrets.ServerClientCert,
		SigningCA:  component.CAETCD,
		DNSNames: []string{
			"localhost", service, service + "." + namespace, service + "." + namespace + ".svc",
			service + "." + namespace + ".svc.cluster.local",
			"*." + peerServiceName(role) + "." + namespace + ".svc.cluster.local", hostOf(namespace, role, "*"),
		},
	}
}

// ClientCertificate is the configuration of the certificate that kube-apiserver presents to etcd.
func ClientCertificate() secrets.CertificateConfig {
	return secrets.CertificateConfig{
		Name: ClientSecretName, CommonName: "etcd-client", CertType: secrets.ClientCert, SigningCA: component.CAETCD,
	}
}

// Destroy implements component.Deployer. It deletes the volumes with the data, too, also those of members that there
// are no longer.
func (d *deployer) Destroy(ctx context.Context) error {
	return component.Delete(ctx, d.client, d.deletable()...)
}

// deletable are the objects by name only, so that Destroy needs no secrets.
func (d *deployer) deletable() []client.Object {
	name := Name(d.values.Role)
	objects := append(d.ownSecrets(),
		&appsv1.StatefulSet{ObjectMeta: d.meta(name)},
		&corev1.Service{ObjectMeta: d.meta(ClientServiceName(d.values.Role))},
		&corev1.Service{ObjectMeta: d.meta(peerServiceName(d.values.Role))},
		&policyv1.PodDisruptionBudget{ObjectMeta: d.meta(name)},
	)
	for _, pod := range PodNames(d.values.Role, memberCount) {
		objects = append(objects,
			&corev1.PersistentVolumeClaim{ObjectMeta: d.meta(claimName(d.values.Role) + "-" + pod)})
	}
	return objects
}

func (d *deployer) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: d.namespace, Name: name}
}

// WaitCleanup implements component.Waiter.
func (d *deployer) WaitCleanup(ctx context.Context) error {
	if err := component.WaitUntilGone(ctx, d.client, d.deletable()...); err != nil {
		return err
	}
	return component.WaitUntilNoPods(ctx, d.client, d.namespace, Labels(d.values.Role))
}

// objects returns what makes up an etcd.
func objects(namespace string, v Values, names secretNames) []client.Object {
	objects := []client.Object{clientService(namespace, v), peerService(namespace, v)}
	if v.Availability.IsHigh() {
		objects = append(objects, component.DisruptionBudget(namespace, Name(v.Role), Labels(v.Role)))
	}
	return append(objects, statefulSet(namespace, v, names))
}

func objectMeta(namespace, name string, role Role) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: component.WithControlPlaneRole(Labels(role))}
}

func clientService(namespace string, v Values) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: objectMeta(namespace, ClientServiceName(v.Role), v.Role),
		Spec: corev1.ServiceSpec{
			Type:                corev1.ServiceTypeClusterIP,
			Selector:            Labels(v.Role),
			Ports:               []corev1.ServicePort{clientServicePort()},
			TrafficDistribution: component.TrafficDistribution(v.TrafficDistribution),
		},
	}
}

func peerService(namespace string, v Values) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: objectMeta(namespace, peerServiceName(v.Role), v.Role),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 Labels(v.Role),
			Ports:                    []corev1.ServicePort{clientServicePort(), servicePort("peer", PeerPort)},
		},
	}
}

func clientServicePort() corev1.ServicePort { return servicePort("client", ClientPort) }

func servicePort(name string, port int32) corev1.ServicePort {
	return corev1.ServicePort{
		Name: name, Protocol: corev1.ProtocolTCP, Port: port, TargetPort: intstr.FromInt32(port),
	}
}

// claimName is the name of the volume claim template, as published for Gardener.
func claimName(role Role) string {
	if role == Main {
		return "main-etcd"
	}
	return Name(role)
}

func statefulSet(namespace string, v Values, names secretNames) *appsv1.StatefulSet {
	meta := objectMeta(namespace, Name(v.Role), v.Role)
	return &appsv1.StatefulSet{
		ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{
			Replicas:             new(v.Replicas),
			ServiceName:          peerServiceName(v.Role),
			RevisionHistoryLimit: new(int32(1)),
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			Selector:             &metav1.LabelSelector{MatchLabels: Labels(v.Role)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:      component.Merge(meta.Labels, v.Store.labels(), peerLabels),
					Annotations: names.annotations(),
				},
				Spec: podSpec(namespace, v, names),
			},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{{
				ObjectMeta: metav1.ObjectMeta{Name: claimName(v.Role)},
				Spec: corev1.PersistentVolumeClaimSpec{
					AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
					StorageClassName: v.StorageClass,
					Resources: corev1.VolumeResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceStorage: v.StorageCapacity},
					},
				},
			}},
		},
	}
}

// cpuOf is what an etcd requests, which is its weight where CPU lacks: kube-apiserver is not ready without Main.
func cpuOf(role Role) string {
	if role == Main {
		return "15m"
	}
	return "10m"
}

func podSpec(namespace string, v Values, names secretNames) corev1.PodSpec {
	// The database itself is in the page cache, which the kernel takes back.
	resources := component.LimitMemory(component.AtLeast(component.Requests(cpuOf(v.Role), "60Mi"), v.MinAllowed),
		mostMemory)
	health := component.HealthEndpoint{
		Scheme: corev1.URISchemeHTTP, Port: HealthPort, Ready: "/readyz", Live: "/livez",
	}
	container := corev1.Container{
		Name:            ContainerName,
		Image:           v.Image,
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            arguments(namespace, v),
		Env:             component.GarbageCollection(resources),
		Ports: []corev1.ContainerPort{
			{Name: "client", ContainerPort: ClientPort, Protocol: corev1.ProtocolTCP},
			{Name: "health", ContainerPort: HealthPort, Protocol: corev1.ProtocolTCP},
		},
		Resources:                resources,
		SecurityContext:          component.HardenedContainer(),
		StartupProbe:             restoring(health),
		ReadinessProbe:           health.Readiness(5),
		LivenessProbe:            health.Liveness(),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: claimName(v.Role), MountPath: volumeMount},
			{Name: pkiVolume, MountPath: pkiMount, ReadOnly: true},
		},
	}
	spec := component.HardenedPod(v.PriorityClass, corev1.PodSpec{
		TerminationGracePeriodSeconds: new(int64(60)),
		Volumes:                       []corev1.Volume{certificates(pkiVolume, names.ca, names.server)},
	})
	if v.BackupDir != "" {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "backup", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{
				Path: path.Join(v.BackupDir, namespace, Name(v.Role)), Type: new(corev1.HostPathDirectoryOrCreate),
			},
		}})
		container.VolumeMounts = append(container.VolumeMounts,
			corev1.VolumeMount{Name: "backup", MountPath: backupMount})
		// kubelet creates the directory for root, without whom it could not be written to.
		spec.SecurityContext.RunAsNonRoot = nil
		spec.SecurityContext.RunAsUser = new(int64(0))
	}
	if v.Store != nil {
		spec.Volumes = append(spec.Volumes, v.Store.volume())
		container.VolumeMounts = append(container.VolumeMounts, v.Store.mount())
	}
	v.addPeers(&spec, &container, names)
	spec.Containers = []corev1.Container{container}
	return spec
}

func arguments(namespace string, v Values) []string {
	backups, onDataLoss := volumeMount+"/backup", "fail"
	if v.BackupDir != "" {
		backups = backupMount
	}
	if v.Role == Events {
		onDataLoss = "start-empty"
	}
	return append([]string{
		"--name=" + ownName,
		"--data-dir=" + dataDir,
		"--listen-client-urls=https://0.0.0.0:" + strconv.Itoa(int(ClientPort)),
		fmt.Sprintf("--advertise-client-urls=https://%s:%d", hostOf(namespace, v.Role, ownName), ClientPort),
		"--cert-file=" + pkiMount + "/tls.crt",
		"--key-file=" + pkiMount + "/tls.key",
		"--trusted-ca-file=" + pkiMount + "/ca.crt",
		fmt.Sprintf("--health-address=:%d", HealthPort),
		"--backup-dir=" + backups,
		"--snapshot-period=" + v.SnapshotPeriod.String(),
		"--snapshot-retention=" + strconv.Itoa(v.SnapshotRetention),
		"--on-data-loss=" + onDataLoss,
		quotaFlag + strconv.FormatInt(v.Quota.Value(), 10),
	}, slices.Concat(v.peerArguments(namespace), v.Store.arguments(), v.Restore.Arguments())...)
}

// restoring is a start that may take as long as a backup takes to restore, up to an hour.
func restoring(health component.HealthEndpoint) *corev1.Probe {
	probe := health.Startup()
	probe.HTTPGet.Path, probe.FailureThreshold = health.Ready, 3600
	return probe
}
