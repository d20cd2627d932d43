package interpreter

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

// component builds one from what is not written as a pod template. pod may be nil.
func component(name string, replicas int64, pod fields, request corev1.ResourceList) (workv1alpha2.Component, error) {
	number, err := count(replicas)
	if err != nil {
		return workv1alpha2.Component{}, fmt.Errorf("%s: %w", name, err)
	}
	only := fields{}
	copyFields(only, pod, "nodeSelector", "tolerations", "affinity", "priorityClassName")
	decoded, err := decodePod(only)
	if err != nil {
		return workv1alpha2.Component{}, fmt.Errorf("%s: %w", name, err)
	}
	requirements := componentRequirements(decoded)
	requirements.ResourceRequest = request
	return workv1alpha2.Component{Name: name, Replicas: number, ReplicaRequirements: requirements}, nil
}

// amount reads a quantity that may be written as a number; none if there is none.
func amount(value any) (resource.Quantity, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// whole reads a whole number that may be written as text.
func whole(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case float64:
		return int64(v), true
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil
	}
	return 0, false
}

// flinkComponents are the job manager and the task managers. Without a number of those there are as many as the
// parallelism of the job takes.
func flinkComponents(object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	spec := section(object, "spec")
	var result []workv1alpha2.Component
	for _, role := range []struct {
		name, field string
		replicas    int64
	}{
		{"jobmanager", "jobManager", spec.part("jobManager").numberOr("replicas", 1)},
		{"taskmanager", "taskManager", flinkTaskManagers(spec)},
	} {
		part := spec.part(role.field)
		request := corev1.ResourceList{}
		for resourceName, value := range map[corev1.ResourceName]any{
			corev1.ResourceCPU:    part.part("resource")["cpu"],
			corev1.ResourceMemory: flinkMemory(part.part("resource")["memory"]),
		} {
			if q, ok := amount(value); ok {
				request[resourceName] = q
			}
		}
		pod := part.part("podTemplate", "spec")
		if pod == nil {
			pod = spec.part("podTemplate", "spec")
		}
		c, err := component(role.name, role.replicas, pod, request)
		if err != nil {
			return nil, fmt.Errorf("FlinkDeployment %s: %w", object.GetName(), err)
		}
		result = append(result, c)
	}
	return result, nil
}

// flinkMemory: Flink writes 2048m for mebibytes, which would be thousandths elsewhere.
func flinkMemory(value any) any {
	text, ok := value.(string)
	if !ok {
		return value
	}
	if size, ok := javaMemory(text); ok {
		return resource.NewQuantity(size, resource.BinarySI).String()
	}
	return text
}

func flinkTaskManagers(spec fields) int64 {
	if n, ok := whole(spec.part("taskManager")["replicas"]); ok {
		return n
	}
	parallelism, ok := whole(spec.part("job")["parallelism"])
	slots, told := whole(spec.part("flinkConfiguration")["taskmanager.numberOfTaskSlots"])
	if !ok || !told || slots <= 0 {
		return 1
	}
	return (parallelism + slots - 1) / slots
}

func flinkDependencies(object *unstructured.Unstructured, d *dependencies) error {
	spec := section(object, "spec")
	d.addAccount(spec.text("serviceAccount"))
	for _, pod := range []fields{
		spec.part("podTemplate", "spec"), spec.part("jobManager", "podTemplate", "spec"),
		spec.part("taskManager", "podTemplate", "spec"),
	} {
		if err := d.addDecoded(pod); err != nil {
			return err
		}
	}
	return nil
}

// sparkComponents are the driver and the executors.
func sparkComponents(object *unstructured.Unstructured) ([]workv1alpha2.Component, error) {
	spec := section(object, "spec")
	var result []workv1alpha2.Component
	for _, role := range []struct {
		name     string
		replicas int64
	}{{"driver", 1}, {"executor", spec.part("executor").numberOr("instances", 1)}} {
		part := spec.part(role.name)
		pod := fields{}
		copyFields(pod, part.part("template", "spec"), "nodeSelector", "tolerations", "affinity", "priorityClassName")
		copyFields(pod, part, "nodeSelector", "tolerations", "affinity", "priorityClassName")
		if pod["nodeSelector"] == nil {
			copyFields(pod, spec, "nodeSelector")
		}
		c, err := component(role.name, role.replicas, pod, sparkRequest(spec, part))
		if err != nil {
			return nil, fmt.Errorf("SparkApplication %s: %w", object.GetName(), err)
		}
		result = append(result, c)
	}
	return result, nil
}

// sparkRequest is what Spark asks for: memory has an overhead of a tenth, or two fifths if the program does not run in
// the JVM, and of 384 MiB at least.
func sparkRequest(spec, part fields) corev1.ResourceList {
	request := corev1.ResourceList{}
	cpu, ok := amount(part["coreRequest"])
	if !ok {
		cpu, ok = amount(part["cores"])
	}
	if ok {
		request[corev1.ResourceCPU] = cpu
	}
	memory, ok := javaMemory(part.text("memory"))
	if !ok {
		return request
	}
	overhead, told := javaMemory(part.text("memoryOverhead"))
	if !told {
		overhead = max(384<<20, int64(float64(memory)*sparkOverhead(spec)))
	}
	request[corev1.ResourceMemory] = *resource.NewQuantity(memory+overhead, resource.BinarySI)
	return request
}

func sparkOverhead(spec fields) float64 {
	if factor, err := strconv.ParseFloat(spec.text("memoryOverheadFactor"), 64); err == nil && factor >= 0 &&
		factor < 100 {
		return factor
	}
	if language := spec.text("type"); language == "Python" || language == "R" {
		return 0.4
	}
	return 0.1
}

// javaMemory reads sizes as the JVM writes them: 512m and 2g are binary, and a number alone is mebibytes.
func javaMemory(text string) (int64, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	digits := strings.TrimRight(text, "kmgtpib ")
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || n < 0 || n > 1<<40 {
		return 0, false
	}
	shift, known := map[string]int{
		"": 20, "b": 0, "k": 10, "kb": 10, "ki": 10, "m": 20, "mb": 20, "mi": 20, "g": 30, "gb": 30, "gi": 30, "t": 40,
		"tb": 40, "ti": 40,
	}[strings.TrimSpace(text[len(digits):])]
	size := n * float64(int64(1)<<shift)
	return int64(size), known && size < 1<<62
}

func sparkDependencies(object *unstructured.Unstructured, d *dependencies) error {
	spec := section(object, "spec")
	for _, name := range entries(spec["imagePullSecrets"]) {
		if text, ok := name.(string); ok {
			d.add("Secret", text)
		}
	}
	d.add("ConfigMap", spec.text("sparkConfigMap"), spec.text("hadoopConfigMap"))
	if err := d.addDecoded(fields{"volumes": spec["volumes"]}); err != nil {
		return err
	}
	for _, role := range []string{"driver", "executor"} {
		part := spec.part(role)
		for _, secret := range part.list("secrets") {
			d.add("Secret", secret.text("name"))
		}
		for _, configMap := range part.list("configMaps") {
			d.add("ConfigMap", configMap.text("name"))
		}
		d.addAccount(part.text("serviceAccount"))
		containers := fields{}
		copyFields(containers, part, "env", "envFrom")
		if err := d.addDecoded(fields{"containers": []any{map[string]any(containers)}}); err != nil {
			return err
		}
	}
	return nil
}
