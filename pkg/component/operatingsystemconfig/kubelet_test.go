package operatingsystemconfig

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfigv1beta1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Every field of the user's settings, set alone, changes the kubelet's configuration. A field that is new in the API
// fails here until it is taken over.
func TestEveryKubeletSettingReachesTheKubelet(t *testing.T) {
	plain := rendered(t, &gardencorev1beta1.KubeletConfig{})
	var visit func(at reflect.Type, path string, settings func() (*gardencorev1beta1.KubeletConfig, reflect.Value))
	visit = func(at reflect.Type, path string, settings func() (*gardencorev1beta1.KubeletConfig, reflect.Value)) {
		for i := range at.NumField() {
			field := at.Field(i)
			name := path + "." + field.Name
			within := func() (*gardencorev1beta1.KubeletConfig, reflect.Value) {
				config, parent := settings()
				return config, parent.Field(i)
			}
			if nested := structOf(field.Type); nested != nil {
				visit(nested, name, func() (*gardencorev1beta1.KubeletConfig, reflect.Value) {
					config, value := within()
					if value.Kind() == reflect.Pointer {
						value.Set(reflect.New(nested))
						value = value.Elem()
					}
					return config, value
				})
				continue
			}
			config, value := within()
			value.Set(sample(t, name, field.Type))
			if rendered(t, config) == plain {
				t.Errorf("%s has no effect", name)
			}
		}
	}
	visit(reflect.TypeFor[gardencorev1beta1.KubeletConfig](), "kubelet",
		func() (*gardencorev1beta1.KubeletConfig, reflect.Value) {
			config := &gardencorev1beta1.KubeletConfig{}
			return config, reflect.ValueOf(config).Elem()
		})
}

// structOf returns the struct whose fields are settings themselves.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t == reflect.TypeFor[metav1.Duration]() ||
		t == reflect.TypeFor[resource.Quantity]() {
		return nil
	}
	return t
}

// sample is a value of the type that is no default.
func sample(t *testing.T, name string, of reflect.Type) reflect.Value {
	t.Helper()
	switch value := reflect.New(of).Elem().Interface().(type) {
	case *bool:
		// One of the two is the default.
		return reflect.ValueOf(new(name == "kubelet.SeccompDefault" || name == "kubelet.ProtectKernelDefaults" ||
			name == "kubelet.SingleProcessOOMKill"))
	case *int32:
		return reflect.ValueOf(new(int32(77)))
	case *int64:
		return reflect.ValueOf(new(int64(7777)))
	case *string:
		return reflect.ValueOf(new("77%"))
	case *metav1.Duration:
		return reflect.ValueOf(&metav1.Duration{Duration: 77 * time.Second})
	case *resource.Quantity:
		return reflect.ValueOf(new(resource.MustParse("77")))
	case []string:
		return reflect.ValueOf([]string{"registry.example/*"})
	case map[string]bool:
		return reflect.ValueOf(map[string]bool{"NodeSwap": true})
	case *gardencorev1beta1.ImagePullCredentialsVerificationPolicy:
		return reflect.ValueOf(new(gardencorev1beta1.AlwaysVerify))
	case *gardencorev1beta1.SwapBehavior:
		return reflect.ValueOf(new(gardencorev1beta1.LimitedSwap))
	default:
		t.Fatalf("%s: no sample of %T", name, value)
		return reflect.Value{}
	}
}

// rendered is the kubelet's configuration as text.
func rendered(t *testing.T, user *gardencorev1beta1.KubeletConfig) string {
	t.Helper()
	v := values()
	v.Kubelet = user
	data, err := kubeletConfig(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestImageVerification(t *testing.T) {
	config := &kubeletconfigv1beta1.KubeletConfiguration{}
	err := yaml.UnmarshalStrict([]byte(rendered(t, &gardencorev1beta1.KubeletConfig{
		ImagePullCredentialsVerificationPolicy: new(gardencorev1beta1.NeverVerifyAllowlistedImages),
		PreloadedImagesVerificationAllowlist:   []string{"registry.example/*"}, SingleProcessOOMKill: new(true),
	})), config)
	if err != nil {
		t.Fatal(err)
	}
	if config.ImagePullCredentialsVerificationPolicy != kubeletconfigv1beta1.NeverVerifyAllowlistedImages ||
		fmt.Sprint(config.PreloadedImagesVerificationAllowlist) != "[registry.example/*]" ||
		!*config.SingleProcessOOMKill {
		t.Errorf("configuration is %+v", config)
	}
}

func TestKubeletLabels(t *testing.T) {
	for label, want := range map[string]bool{
		"team": true, "example.com/team": true, "kubernetes.io/os": true,
		"node.kubernetes.io/exclude-from-external-load-balancers": true,
		"mine.node.kubernetes.io/a":                               true, "kubelet.kubernetes.io/a": true,
		"node-role.kubernetes.io/web":           false,
		"node-restriction.kubernetes.io/tenant": false, "kubernetes.io/role": false, "x.k8s.io/a": false,
		"notkubernetes.io/a": true,
	} {
		if got := kubeletMaySet(label); got != want {
			t.Errorf("%s: %t, want %t", label, got, want)
		}
	}
}

func TestNothingIsLeftOfKeysAndCertificates(t *testing.T) {
	v := values()
	v.TrustedCertificates, v.AuthorizedKeys = "", nil
	units, files, err := Reconcile(v)
	if err != nil {
		t.Fatal(err)
	}
	empty := map[string]bool{PathTrustedCertificates: false, PathAuthorizedKeys: false}
	for _, file := range files {
		if _, watched := empty[file.Path]; watched {
			data, err := base64.StdEncoding.DecodeString(file.Content.Inline.Data)
			empty[file.Path] = err == nil && len(data) == 0
		}
	}
	for path, is := range empty {
		if !is {
			t.Errorf("%s is not written empty", path)
		}
	}
	names := map[string]bool{}
	for _, unit := range units {
		names[unit.Name] = true
	}
	if !names[UnitTrust] || !names[UnitSSH] {
		t.Errorf("units are %v: what takes keys and certificates away is missing", names)
	}
}
