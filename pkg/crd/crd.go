// Package crd installs CustomResourceDefinitions.
package crd

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apply"
)

const (
	// servedTimeout bounds how long the API server may take to serve a new kind, servedPoll is how often it is asked.
	servedTimeout = 30 * time.Second
	servedPoll    = 50 * time.Millisecond
)

// Read reads the definitions in a folder, one in each file.
func Read(files fs.FS, folder string) ([]*unstructured.Unstructured, error) {
	entries, err := fs.ReadDir(files, folder)
	if err != nil {
		return nil, fmt.Errorf("reading custom resource definitions: %w", err)
	}
	var definitions []*unstructured.Unstructured
	for _, entry := range entries {
		data, err := fs.ReadFile(files, path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading custom resource definitions: %w", err)
		}
		definition := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(data, &definition.Object); err != nil {
			return nil, fmt.Errorf("%s/%s: %w", folder, entry.Name(), err)
		}
		definitions = append(definitions, definition)
	}
	return definitions, nil
}

// Install applies definitions and waits until the API server serves their kinds. Installing them again changes nothing.
func Install(ctx context.Context, c client.Client, owner client.FieldOwner,
	definitions ...*unstructured.Unstructured) error {
	for _, definition := range definitions {
		if err := apply.Unstructured(ctx, c, owner, definition); err != nil {
			return err
		}
	}
	for _, definition := range definitions {
		if err := waitServed(ctx, c, definition.GetName()); err != nil {
			return fmt.Errorf("CustomResourceDefinition %s is not served: %w", definition.GetName(), err)
		}
	}
	return nil
}

func waitServed(ctx context.Context, c client.Reader, name string) error {
	last := "the API server has not looked at it yet"
	err := wait.PollUntilContextTimeout(ctx, servedPoll, servedTimeout, true, func(ctx context.Context) (bool, error) {
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		if err := c.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		var served bool
		served, last = Established(definition)
		return served, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}

// Established says whether the API server serves the kind of a definition, and if not why.
func Established(definition *unstructured.Unstructured) (served bool, reason string) {
	reason = "not established yet"
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, entry := range conditions {
		condition, _ := entry.(map[string]any)
		switch {
		case condition["type"] == string(apiextensionsv1.Established) && condition["status"] == "True":
			return true, ""
		case condition["type"] == string(apiextensionsv1.NamesAccepted) && condition["status"] == "False":
			reason = fmt.Sprintf("its names are not accepted: %v", condition["message"])
		}
	}
	return false, reason
}
