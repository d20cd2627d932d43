package live

import (
	"context"
	"encoding/json"
	"net/http"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
)

// Row is an object as lists of a page show it.
type Row = json.RawMessage

// List gives the rows of all objects of a resource, once.
func List(ctx context.Context, cluster *clusters.Cluster, of schema.GroupVersion, resource string) ([]Row, error) {
	s := source{cluster: cluster.Name, group: of.Group, version: of.Version, resource: resource, view: ViewRow}
	rows := []Row{}
	_, err := s.list(ctx, cluster, listing{user: cluster.Credential, page: func(items []*item) error {
		for _, i := range items {
			rows = append(rows, i.text)
		}
		return nil
	}})
	return rows, err
}

// Get gives the row of one object that is in no namespace.
func Get(ctx context.Context, cluster *clusters.Cluster, of schema.GroupVersion, resource, name string) (Row, error) {
	s := source{group: of.Group, version: of.Version, resource: resource, view: ViewRow}
	var object json.RawMessage
	if err := cluster.Do(ctx, http.MethodGet, "/"+s.path()+"/"+name, nil, nil, &object); err != nil {
		return nil, err
	}
	i, err := s.render(object)
	if err != nil {
		return nil, err
	}
	return i.text, nil
}
