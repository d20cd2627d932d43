package order

import (
	"strings"
	"testing"
	"time"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/golden"
)

var today = time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)

func version(text string, state gardencorev1beta1.VersionClassification) gardencorev1beta1.ExpirableVersion {
	return gardencorev1beta1.ExpirableVersion{Version: text, Classification: &state}
}

// little offers one of everything, and much has several.
func little() *gardencorev1beta1.CloudProfileSpec {
	return &gardencorev1beta1.CloudProfileSpec{
		Type: "local",
		Kubernetes: gardencorev1beta1.KubernetesSettings{Versions: []gardencorev1beta1.ExpirableVersion{
			version("1.36.3", gardencorev1beta1.ClassificationSupported),
			version("1.37.0", gardencorev1beta1.ClassificationPreview),
			version("1.36.1", gardencorev1beta1.ClassificationDeprecated),
			version("1.35.4", gardencorev1beta1.ClassificationSupported),
			version("1.35.9", gardencorev1beta1.ClassificationExpired),
		}},
		MachineImages: []gardencorev1beta1.MachineImage{{
			Name: "debian", Versions: []gardencorev1beta1.MachineImageVersion{
				{ExpirableVersion: version("12.11.0", gardencorev1beta1.ClassificationSupported)},
			},
		}},
		MachineTypes: []gardencorev1beta1.MachineType{{Name: "small"}},
		Regions: []gardencorev1beta1.Region{
			{Name: "local", Zones: []gardencorev1beta1.AvailabilityZone{{Name: "a"}}},
		},
	}
}

func much() *gardencorev1beta1.CloudProfileSpec {
	profile := little()
	profile.MachineImages[0].Versions = append(profile.MachineImages[0].Versions, gardencorev1beta1.MachineImageVersion{
		ExpirableVersion: version("12.10.0", gardencorev1beta1.ClassificationSupported),
		Architectures:    []string{"arm64"},
	})
	profile.MachineTypes = append(profile.MachineTypes,
		gardencorev1beta1.MachineType{Name: "large", Architecture: new("arm64")},
		gardencorev1beta1.MachineType{Name: "withdrawn", Usable: new(false)})
	profile.Regions = append(profile.Regions, gardencorev1beta1.Region{
		Name: "far", Zones: []gardencorev1beta1.AvailabilityZone{
			{Name: "a"}, {Name: "b"}, {Name: "c", UnavailableMachineTypes: []string{"small"}},
		},
	})
	return profile
}

func named(profile string) Answers {
	return Answers{Namespace: "garden-demo", Name: "one", CloudProfile: ParseProfile(profile)}
}

func TestShoots(t *testing.T) {
	pool := Pool{Name: "pool", Type: "small", Minimum: 1, Maximum: 3}
	asked := named("local")
	asked.Pools = []Pool{pool}
	workerless := named("local")
	workerless.Workerless, workerless.Version = true, "1"
	full := named("NamespacedCloudProfile/ours")
	full.Region, full.Version, full.Purpose, full.HighAvailability = "far", "1.35", "production", "zone"
	full.SecretBinding, full.Networking = "old", "calico"
	full.Pools = []Pool{pool, {Name: "arm", Type: "large", Minimum: 2, Maximum: 2, Zones: []string{"a"}}}
	full.Pools[0].Zones = []string{"a", "b"}
	schedule, err := ParseSchedule("0 20 * * 1-5; 0 7 * * 1-5 ;Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	full.Schedules = []gardencorev1beta1.HibernationSchedule{schedule}
	if full.Window, err = ParseWindow("220000+0100-230000+0100"); err != nil {
		t.Fatal(err)
	}
	offer := Offer{
		CredentialsBindings: []string{"local"}, SecretBindings: []string{"old"}, Networking: []string{"flannel"},
	}
	for name, test := range map[string]struct {
		answers Answers
		profile *gardencorev1beta1.CloudProfileSpec
	}{
		"little": {asked, little()}, "workerless": {workerless, little()}, "much": {full, much()},
	} {
		offer.Profile = test.profile
		if questions := Open(&test.answers, offer); len(questions) > 0 {
			t.Errorf("%s: %s is asked for", name, questions[0].Path)
			continue
		}
		shoot, errs := Shoot(test.answers, test.profile, today)
		if len(errs) > 0 {
			t.Errorf("%s: %v", name, errs.ToAggregate())
			continue
		}
		golden.CheckWithScheme(t, apis.GardenScheme(), name, shoot)
	}
}

// What is not offered is told with its field and with what is.
func TestShootsThatAreNotOffered(t *testing.T) {
	for want, change := range map[string]func(*Answers){
		`spec.kubernetes.version: Unsupported value: "1.34"`:        func(a *Answers) { a.Version = "1.34" },
		`spec.kubernetes.version: Unsupported value: "1.35.9"`:      func(a *Answers) { a.Version = "1.35.9" },
		`spec.kubernetes.version: Unsupported value: "1.37"`:        func(a *Answers) { a.Version = "1.37" },
		`spec.region: Unsupported value: "near"`:                    func(a *Answers) { a.Region = "near" },
		`spec.provider.type: Unsupported value: "other"`:            func(a *Answers) { a.Provider = "other" },
		`spec.provider.workers[0].machine.type: Unsupported value:`: func(a *Answers) { a.Pools[0].Type = "withdrawn" },
		`spec.provider.workers[0].zones[0]: Unsupported value:`:     func(a *Answers) { a.Pools[0].Zones[0] = "x" },
	} {
		answers := named("local")
		answers.Region, answers.Provider = "far", "local"
		answers.Pools = []Pool{{Name: "pool", Type: "small", Minimum: 1, Maximum: 1, Zones: []string{"a"}}}
		change(&answers)
		_, errs := Shoot(answers, much(), today)
		if len(errs) == 0 || !strings.Contains(errs.ToAggregate().Error(), want) {
			t.Errorf("got %v, want %s", errs, want)
		}
	}
}

// Questions come up until all is answered: where there is one choice, none does.
func TestQuestions(t *testing.T) {
	answers := named("local")
	offer := Offer{
		Profile: much(), CredentialsBindings: []string{"x", "y"}, Networking: []string{"calico", "flannel"},
	}
	for _, step := range []struct{ path, choices, wrong, answer string }{
		{"spec.region", "local far", "", "far"},
		{"spec.provider.workers", "small large none", "", "small"},
		{"spec.provider.workers[0].maximum", "", "many", "1-2"},
		{"spec.provider.workers[0].zones", "a b", "", "a,b"},
		{"spec.credentialsBindingName", "x y", "", "y"},
		{"spec.networking.type", "calico flannel", "", "flannel"},
	} {
		questions := Open(&answers, offer)
		if len(questions) == 0 {
			t.Fatalf("%s is not asked for", step.path)
		}
		question := questions[0]
		if question.Path.String() != step.path || strings.Join(question.Choices, " ") != step.choices {
			t.Fatalf("got %s of %v, want %s of %s", question.Path, question.Choices, step.path, step.choices)
		}
		if step.wrong != "" && question.Answer(step.wrong) == nil {
			t.Errorf("%s: %q is taken", step.path, step.wrong)
		}
		if err := question.Answer(step.answer); err != nil {
			t.Errorf("%s: %v", step.path, err)
		}
	}
	if questions := Open(&answers, offer); len(questions) > 0 {
		t.Errorf("%s is asked for", questions[0].Path)
	}
	shoot, errs := Shoot(answers, offer.Profile, today)
	if len(errs) > 0 || *shoot.Spec.CredentialsBindingName != "y" || len(shoot.Spec.Provider.Workers[0].Zones) != 2 {
		t.Errorf("got %+v, %v", shoot, errs)
	}
}

// No machines are an answer, too; what only machines need is not asked for then.
func TestQuestionsOfAWorkerlessShoot(t *testing.T) {
	answers := named("local")
	questions := Open(&answers, Offer{Profile: little()})
	if len(questions) != 1 || questions[0].Answer(noMachines) != nil {
		t.Fatalf("got %+v", questions)
	}
	if questions := Open(&answers, Offer{Profile: little()}); len(questions) > 0 || !answers.Workerless {
		t.Errorf("got %+v", questions)
	}
}

func TestContradictions(t *testing.T) {
	for want, answers := range map[string]Answers{
		"--workerless and --workers":         {Workerless: true, Pools: []Pool{{}}},
		"neither credentials nor":            {Workerless: true, Networking: "flannel"},
		"--credentials-binding and --secret": {CredentialsBinding: "a", SecretBinding: "b"},
	} {
		if err := Contradictions(answers); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if err := Contradictions(Answers{Workerless: true}); err != nil {
		t.Error(err)
	}
}
