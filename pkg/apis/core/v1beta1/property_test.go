package v1beta1

import (
	"math/rand"
	"testing"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// goodObjects are objects of all kinds that are accepted, with the check that accepts them.
func goodObjects() map[string]func() (runtime.Object, func(runtime.Object) field.ErrorList) {
	return map[string]func() (runtime.Object, func(runtime.Object) field.ErrorList){
		"Shoot":                  good(aShoot, ValidateNewShoot),
		"Shoot, workerless":      good(aWorkerlessShoot, ValidateNewShoot),
		"Shoot, all settings":    good(aShootWithEverything, ValidateShoot),
		"Seed":                   good(aSeed, ValidateSeed),
		"CloudProfile":           good(aProfile, ValidateCloudProfile),
		"NamespacedCloudProfile": good(aNamespacedProfile, ValidateNamespacedCloudProfile),
		"Project":                good(aProject, ValidateProject),
		"Quota":                  good(aQuota, ValidateQuota),
		"SecretBinding":          good(aSecretBinding, ValidateSecretBinding),
		"BackupBucket":           good(aBackupBucket, ValidateBackupBucket),
		"BackupEntry":            good(aBackupEntry, ValidateBackupEntry),
		"ControllerRegistration": good(aRegistration, ValidateControllerRegistration),
		"ControllerDeployment":   good(aDeployment, ValidateControllerDeployment),
		"ControllerInstallation": good(anInstallation, ValidateControllerInstallation),
		"ExposureClass":          good(anExposureClass, ValidateExposureClass),
		"InternalSecret":         good(anInternalSecret, ValidateInternalSecret),
		"ShootState":             good(aShootState, ValidateShootState),
	}
}

func good[T runtime.Object](object func() T,
	validate func(T) field.ErrorList) func() (runtime.Object, func(runtime.Object) field.ErrorList) {
	return func() (runtime.Object, func(runtime.Object) field.ErrorList) {
		return object(), func(o runtime.Object) field.ErrorList { return validate(o.(T)) }
	}
}

// An object that is accepted stays so with its defaults, which do not change when they are set again.
func TestDefaultsKeepObjectsValid(t *testing.T) {
	scheme := newScheme(t)
	for name, make := range goodObjects() {
		t.Run(name, func(t *testing.T) {
			object, validate := make()
			if errs := validate(object); len(errs) > 0 {
				t.Fatalf("is refused as it is: %v", errs.ToAggregate())
			}
			scheme.Default(object)
			if errs := validate(object); len(errs) > 0 {
				t.Fatalf("is refused with its defaults: %v", errs.ToAggregate())
			}
			expectStable(t, scheme, object)
		})
	}
}

// Defaults of any object, sensible or not, are set once and for all, and it can be validated.
func TestDefaultsAreStable(t *testing.T) {
	scheme := newScheme(t)
	filler := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme))
	for name, make := range goodObjects() {
		t.Run(name, func(t *testing.T) {
			object, validate := make()
			for range 30 {
				filler.Fill(object)
				validate(object)
				scheme.Default(object)
				expectStable(t, scheme, object)
				validate(object)
			}
		})
	}
}

func expectStable(t *testing.T, scheme *runtime.Scheme, object runtime.Object) {
	t.Helper()
	again := object.DeepCopyObject()
	scheme.Default(again)
	if !apiequality.Semantic.DeepEqual(object, again) {
		t.Fatalf("defaults change when they are set again: %+v", object)
	}
}
