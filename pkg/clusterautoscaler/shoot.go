package clusterautoscaler

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	policylisters "k8s.io/client-go/listers/policy/v1"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/clusterautoscaler/scheduling"
)

// shoot is what snapshots are taken from: everything is watched.
type shoot struct {
	cluster, priorities informers.SharedInformerFactory

	nodes      corelisters.NodeLister
	pods       corelisters.PodLister
	namespaces corelisters.NamespaceLister
	claims     corelisters.PersistentVolumeClaimLister
	volumes    corelisters.PersistentVolumeLister
	configMaps corelisters.ConfigMapLister
	daemonSets appslisters.DaemonSetLister
	budgets    policylisters.PodDisruptionBudgetLister
}

func newShoot(client kubernetes.Interface) *shoot {
	all := informers.NewSharedInformerFactory(client, 0)
	one := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(metav1.NamespaceSystem),
		informers.WithTweakListOptions(func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField,
				gardencorev1beta1.ClusterAutoscalerPriorityConfigMap).String()
		}))
	return &shoot{
		cluster: all, priorities: one,
		nodes: all.Core().V1().Nodes().Lister(), pods: all.Core().V1().Pods().Lister(),
		namespaces: all.Core().V1().Namespaces().Lister(),
		claims:     all.Core().V1().PersistentVolumeClaims().Lister(),
		volumes:    all.Core().V1().PersistentVolumes().Lister(),
		configMaps: one.Core().V1().ConfigMaps().Lister(),
		daemonSets: all.Apps().V1().DaemonSets().Lister(), budgets: all.Policy().V1().PodDisruptionBudgets().Lister(),
	}
}

// start watches, and returns when everything has been read once.
func (s *shoot) start(ctx context.Context) error {
	for _, factory := range []informers.SharedInformerFactory{s.cluster, s.priorities} {
		factory.Start(ctx.Done())
		for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
			if !synced {
				return fmt.Errorf("reading %s of the shoot: %w", kind, ctx.Err())
			}
		}
	}
	return nil
}

// snapshot returns the shoot as it is now. Objects belong to the cache: they must not be changed.
func (s *shoot) snapshot(now time.Time) (*Snapshot, error) {
	result := &Snapshot{Now: now}
	var err error
	if result.Nodes, err = s.nodes.List(labels.Everything()); err != nil {
		return nil, err
	}
	if result.Pods, err = s.pods.List(labels.Everything()); err != nil {
		return nil, err
	}
	if result.DaemonSets, err = s.daemonSets.List(labels.Everything()); err != nil {
		return nil, err
	}
	if result.Budgets, err = s.budgets.List(labels.Everything()); err != nil {
		return nil, err
	}
	if result.Facts, err = s.facts(); err != nil {
		return nil, err
	}
	result.Priorities, err = s.readPriorities()
	return result, err
}

func (s *shoot) facts() (scheduling.Facts, error) {
	facts := scheduling.Facts{Namespaces: map[string]labels.Set{}, Claims: map[string]*corev1.PersistentVolume{}}
	namespaces, err := s.namespaces.List(labels.Everything())
	if err != nil {
		return facts, err
	}
	for _, namespace := range namespaces {
		facts.Namespaces[namespace.Name] = namespace.Labels
	}
	claims, err := s.claims.List(labels.Everything())
	if err != nil {
		return facts, err
	}
	for _, claim := range claims {
		if claim.Spec.VolumeName == "" {
			continue
		}
		if volume, err := s.volumes.Get(claim.Spec.VolumeName); err == nil {
			facts.Claims[claim.Namespace+"/"+claim.Name] = volume
		}
	}
	return facts, nil
}

// readPriorities returns the priorities of groups; without the ConfigMap there are none.
func (s *shoot) readPriorities() (Priorities, error) {
	found, err := s.configMaps.ConfigMaps(metav1.NamespaceSystem).List(labels.Everything())
	if err != nil || len(found) == 0 {
		return nil, err
	}
	priorities, err := ParsePriorities(found[0].Data[gardencorev1beta1.ClusterAutoscalerPriorityKey])
	if err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s: %s: %w", metav1.NamespaceSystem,
			gardencorev1beta1.ClusterAutoscalerPriorityConfigMap, gardencorev1beta1.ClusterAutoscalerPriorityKey, err)
	}
	return priorities, nil
}
