package v1beta1

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/randfill"
	"sigs.k8s.io/yaml"
)

// Whatever is sent as one of our kinds is decoded, gets defaults and is validated without a panic; defaults are set
// once and for all.

func newScheme(t testing.TB) *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

func newDecoder(t testing.TB) runtime.Decoder {
	return serializer.NewCodecFactory(newScheme(t)).UniversalDeserializer()
}

// fuzzed is a kind whose objects have metadata.
type fuzzed interface {
	runtime.Object
	metav1.Object
}

// encode writes an object as people do.
func encode(t testing.TB, kind string, object any) []byte {
	data, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		t.Fatal(err)
	}
	fields["apiVersion"], fields["kind"] = SchemeGroupVersion.String(), kind
	data, err = yaml.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fuzz decodes inputs and does with each object of the type what the server does with it. Good objects are what a
// fuzzed one is held against as a change. More is what else is done with an object of the kind.
func fuzz[T fuzzed](f *testing.F, kind string, validate func(T) field.ErrorList,
	validateUpdate func(object, old T) field.ErrorList, more func(T), good ...T) {
	for _, object := range good {
		f.Add(encode(f, kind, object))
	}
	f.Add([]byte("apiVersion: core.gardener.cloud/v1beta1\nkind: " + kind + "\nspec: {}\nstatus: {}"))
	scheme, decoder := newScheme(f), newDecoder(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		decoded, _, err := decoder.Decode(data, nil, nil)
		object, ok := decoded.(T)
		if err != nil || !ok {
			object = filled[T](scheme, kind, data)
		}
		if len(ValidateLengths(object)) > 0 {
			return
		}
		scheme.Default(object)
		again := object.DeepCopyObject().(T)
		scheme.Default(again)
		if !apiequality.Semantic.DeepEqual(object, again) {
			t.Fatalf("defaults are not stable for %s", data)
		}
		validate(object)
		again.SetResourceVersion("1")
		for _, old := range append(good, object) {
			validateUpdate(again, old)
			validateUpdate(old, again)
		}
		if more != nil {
			more(object)
		}
	})
}

// filled makes an object of bytes that are no text: of a kind that text hardly ever finds, with something in most
// fields.
func filled[T fuzzed](scheme *runtime.Scheme, kind string, data []byte) T {
	object, err := scheme.New(SchemeGroupVersion.WithKind(kind))
	if err != nil {
		panic(err) // the kind is a constant
	}
	randfill.NewFromGoFuzz(data).NilChance(.5).NumElements(0, 3).Funcs(fillers(scheme)...).Fill(object)
	return object.(T)
}

func fillers(scheme *runtime.Scheme) []any {
	return fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs)(serializer.NewCodecFactory(scheme))
}

func FuzzShoot(f *testing.F) {
	f.Add([]byte("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nspec: {provider: {workers: [{}]}, " +
		"networking: {pods: ::/0}}"))
	f.Add([]byte("apiVersion: core.gardener.cloud/v1beta1\nkind: Shoot\nmetadata: {annotations: " +
		"{gardener.cloud/operation: 'rotate-ca-start;rollout-workers=*'}}"))
	profile, now := aProfile(), time.Unix(0, 0)
	fuzz(f, "Shoot", ValidateNewShoot, ValidateShootUpdate, func(shoot *Shoot) {
		ShootWarnings(shoot, now)
		ValidateShootStatusUpdate(shoot, aShoot())
		ValidateShootBindingUpdate(shoot, aShoot())
		completed := shoot.DeepCopy()
		DefaultShootFromCloudProfile(completed, shoot, &profile.Spec, now)
		ValidateShoot(completed)
		ValidateShootAgainstCloudProfile(completed, shoot, &profile.Spec, now)
	}, aShoot(), aWorkerlessShoot(), aShootWithEverything())
}

func FuzzSeed(f *testing.F) {
	fuzz(f, "Seed", ValidateSeed, ValidateSeedUpdate, func(seed *Seed) { ValidateSeedStatusUpdate(seed, aSeed()) },
		aSeed())
}

func FuzzCloudProfile(f *testing.F) {
	if published, err := os.ReadFile("../../testdata/cloudprofile-aws.yaml"); err == nil {
		f.Add(published)
	}
	fuzz(f, "CloudProfile", ValidateCloudProfile, ValidateCloudProfileUpdate, func(profile *CloudProfile) {
		CloudProfileWarnings(profile)
		shoot := aShoot()
		shoot.Spec.Provider.Workers[0].Machine.Image = nil
		DefaultShootFromCloudProfile(shoot, nil, &profile.Spec, time.Unix(0, 0))
		ValidateShootAgainstCloudProfile(shoot, nil, &profile.Spec, time.Unix(0, 0))
	}, aProfile())
}

func FuzzNamespacedCloudProfile(f *testing.F) {
	fuzz(f, "NamespacedCloudProfile", ValidateNamespacedCloudProfile, ValidateNamespacedCloudProfileUpdate,
		func(profile *NamespacedCloudProfile) { NamespacedCloudProfileWarnings(profile) }, aNamespacedProfile())
}

func FuzzProject(f *testing.F) {
	fuzz(f, "Project", ValidateProject, ValidateProjectUpdate,
		func(project *Project) { ValidateProjectStatusUpdate(project, aProject()) }, aProject())
}

func FuzzQuota(f *testing.F) { fuzz(f, "Quota", ValidateQuota, ValidateQuotaUpdate, nil, aQuota()) }

func FuzzSecretBinding(f *testing.F) {
	fuzz(f, "SecretBinding", ValidateSecretBinding, ValidateSecretBindingUpdate, nil, aSecretBinding())
}

func FuzzBackupBucket(f *testing.F) {
	fuzz(f, "BackupBucket", ValidateBackupBucket, ValidateBackupBucketUpdate,
		func(b *BackupBucket) { ValidateBackupBucketStatusUpdate(b, b) }, aBackupBucket())
}

func FuzzBackupEntry(f *testing.F) {
	fuzz(f, "BackupEntry", ValidateBackupEntry, ValidateBackupEntryUpdate,
		func(e *BackupEntry) { ValidateBackupEntryStatusUpdate(e, e) }, aBackupEntry())
}

func FuzzControllerRegistration(f *testing.F) {
	fuzz(f, "ControllerRegistration", ValidateControllerRegistration, ValidateControllerRegistrationUpdate, nil,
		aRegistration())
}

func FuzzControllerDeployment(f *testing.F) {
	fuzz(f, "ControllerDeployment", ValidateControllerDeployment, ValidateControllerDeploymentUpdate, nil,
		aDeployment())
}

func FuzzControllerInstallation(f *testing.F) {
	fuzz(f, "ControllerInstallation", ValidateControllerInstallation, ValidateControllerInstallationUpdate,
		func(i *ControllerInstallation) { ValidateControllerInstallationStatusUpdate(i, i) }, anInstallation())
}

func FuzzExposureClass(f *testing.F) {
	fuzz(f, "ExposureClass", ValidateExposureClass, ValidateExposureClassUpdate, nil, anExposureClass())
}

func FuzzInternalSecret(f *testing.F) {
	fuzz(f, "InternalSecret", ValidateInternalSecret, ValidateInternalSecretUpdate, nil, anInternalSecret())
}

func FuzzShootState(f *testing.F) {
	fuzz(f, "ShootState", ValidateShootState, ValidateShootStateUpdate, nil, aShootState())
}
