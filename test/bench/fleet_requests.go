package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"k8s.io/client-go/rest"
)

// requests counts what a kube-apiserver was asked, by verb, resource and answer.
type requests map[string]float64

// requestsTo reads the counters of the fleet's kube-apiserver.
func (b *fleetBench) requestsTo(ctx context.Context) (requests, error) {
	client, err := rest.UnversionedRESTClientFor(unversioned(b.Config))
	if err != nil {
		return nil, err
	}
	text, err := client.Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return nil, err
	}
	found := requests{}
	for _, metric := range families["apiserver_request_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		name := labels["resource"]
		if labels["subresource"] != "" {
			name += "/" + labels["subresource"]
		}
		if code := labels["code"]; !strings.HasPrefix(code, "2") {
			name += " refused with " + code
		}
		found[labels["verb"]+" "+name] += metric.GetCounter().GetValue()
	}
	return found, nil
}

// perObject lists the requests since before that were made for at least every twentieth object.
func (r requests) perObject(before requests, objects int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if each := (r[name] - before[name]) / float64(objects); each >= 0.05 {
			parts = append(parts, fmt.Sprintf("%.2f %s", each, name))
		}
	}
	return strings.Join(parts, ", ")
}
