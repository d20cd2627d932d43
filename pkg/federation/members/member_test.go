package members

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	toolscache "k8s.io/client-go/tools/cache"
)

// unready is an informer that takes no transformation or no handler, and the factory and the resource that it is of.
type unready struct {
	dynamicinformer.DynamicSharedInformerFactory
	informers.GenericInformer
	toolscache.SharedIndexInformer
	transform, handler error
}

func (u *unready) ForResource(schema.GroupVersionResource) informers.GenericInformer { return u }

func (u *unready) Informer() toolscache.SharedIndexInformer { return u }

func (u *unready) SetTransform(toolscache.TransformFunc) error { return u.transform }

func (u *unready) AddEventHandler(
	toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return nil, u.handler
}

// A watch whose changes nobody would hear of is none: whoever asks for an object is told, each time.
func TestAWatchThatCannotReportIsAnError(t *testing.T) {
	refused := errors.New("it has stopped already")
	for name, informer := range map[string]*unready{
		"no transformation": {transform: refused}, "no handler": {handler: refused},
	} {
		m := &Member{
			name: "one", informers: informer, watched: map[schema.GroupVersionResource]toolscache.SharedIndexInformer{},
		}
		mapping := &meta.RESTMapping{
			Resource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Scope:    meta.RESTScopeNamespace,
		}
		const want = "watching deployments.apps in member one: it has stopped already"
		for range 2 {
			object, err := m.Managed(t.Context(), mapping, "default", "web")
			if object != nil || err == nil || err.Error() != want {
				t.Errorf("%s: got %v, %v, want the error %q", name, object, err, want)
			}
		}
	}
}
