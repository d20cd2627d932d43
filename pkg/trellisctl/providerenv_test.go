package trellisctl

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/shell"
)

// onAWS is a shoot with its credentials; their Secret may lie in another namespace.
func onAWS(secretKey string) []client.Object {
	s, binding := shoot("garden-demo", "one", "local"), "binding"
	s.Spec.Provider.Type, s.Spec.Region, s.Spec.CredentialsBindingName = "aws", "north", &binding
	return []client.Object{
		s, &securityv1alpha1.CredentialsBinding{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "garden-demo", Name: binding},
			CredentialsRef: corev1.ObjectReference{Kind: "Secret", Namespace: "garden-other", Name: "account"},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "garden-other", Name: "account"},
			Data: map[string][]byte{
				"accessKeyID": []byte("id"), "secretAccessKey": []byte(secretKey),
			},
		},
	}
}

// template writes one of the user's.
func template(t *testing.T, providerType, text string, mode os.FileMode) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	dir := filepath.Join(home, ".garden", "templates")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, providerType+".tmpl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func TestProviderEnv(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, onAWS("secret")...)
	const set = "export AWS_ACCESS_KEY_ID='id';\nexport AWS_SECRET_ACCESS_KEY='secret';\nexport " +
		"AWS_DEFAULT_REGION='north';\n"
	if got, err := s.providerScript(t.Context(), shell.Bash, false); err != nil || got != set {
		t.Errorf("got %s, %v", got, err)
	}
	const unset = "unset AWS_ACCESS_KEY_ID;\nunset AWS_SECRET_ACCESS_KEY;\nunset AWS_DEFAULT_REGION;\n"
	if got, err := s.providerScript(t.Context(), shell.Bash, true); err != nil || got != unset {
		t.Errorf("got %s, %v", got, err)
	}
	variables, err := s.providerVariables(t.Context())
	if err != nil || len(variables) != 3 || variables["AWS_SECRET_ACCESS_KEY"] != "secret" {
		t.Errorf("got %v, %v", variables, err)
	}
}

func TestProviderEnvByTemplate(t *testing.T) {
	s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, onAWS("secret")...)
	template(t, "aws", "export KEY={{ shellEscape .unsafeSecretData.secretAccessKey }}", 0o600)
	got, err := s.providerScript(t.Context(), shell.Bash, false)
	if err != nil || got != "export KEY='secret'" {
		t.Errorf("got %s, %v", got, err)
	}
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"without escaping":      {"{{ .unsafeSecretData.secretAccessKey }}", 0o600, "write {{ shellEscape"},
		"that others may write": {"", 0o622, "nobody but you may write"},
		"that is none":          {"{{", 0o600, "template: "},
	} {
		template(t, "aws", test.text, test.mode)
		got, err := s.providerScript(t.Context(), shell.Bash, false)
		if err == nil || got != "" || !strings.Contains(err.Error(), test.want) {
			t.Errorf("a template %s: got %s, %v", name, got, err)
		}
	}
}

func TestShootsWithoutKnownCredentials(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	local := shoot("garden-demo", "one", "local")
	bare := shoot("garden-demo", "one", "local")
	bare.Spec.Provider.Type = "aws"
	identity := onAWS("secret")
	identity[1].(*securityv1alpha1.CredentialsBinding).CredentialsRef.Kind = "WorkloadIdentity"
	elsewhere := shoot("garden-demo", "one", "local")
	elsewhere.Spec.Provider.Type = "../../x"
	for want, objects := range map[string][]client.Object{
		"write a template": {local}, "names no credentials": {bare}, "names a WorkloadIdentity": identity,
		"CredentialsBinding of shoot garden-demo/one": onAWS("secret")[:1], "is no type of provider": {elsewhere},
		"the credentials of shoot garden-demo/one": onAWS("secret")[:2],
	} {
		s := session(t, Target{Project: "demo", Shoot: "one"}, interceptor.Funcs{}, objects...)
		got, err := s.providerScript(t.Context(), shell.Bash, false)
		if err == nil || got != "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %s, %v", want, got, err)
		}
	}
}

func TestResolve(t *testing.T) {
	one := shoot("garden-demo", "one", "local")
	one.Spec.AccessRestrictions = []gardencorev1beta1.AccessRestrictionWithOptions{
		{AccessRestriction: gardencorev1beta1.AccessRestriction{Name: "eu-access-only"}},
	}
	seed := &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Name: "local"}}
	const garden = `"garden":{"name":"landscape-local","alias":"local"}`
	for name, test := range map[string]struct {
		target      Target
		level, want string
	}{
		"a garden": {Target{}, "garden", "{" + garden + "}"},
		"a project": {
			Target{Project: "demo"}, "project", "{" + garden + `,"project":{"name":"demo","namespace":"garden-demo"}}`,
		},
		"the project of a shoot": {
			Target{Shoot: "one"}, "project", "{" + garden + `,"project":{"name":"demo","namespace":"garden-demo"}}`,
		},
		"a seed":              {Target{Seed: "local"}, "seed", "{" + garden + `,"seed":{"name":"local"}}`},
		"the seed of a shoot": {Target{Shoot: "one"}, "seed", "{" + garden + `,"seed":{"name":"local"}}`},
		"a shoot": {
			Target{Shoot: "one"}, "shoot", "{" + garden + `,"project":{"name":"demo","namespace":"garden-demo"},` +
				`"seed":{"name":"local"},"shoot":{"name":"one","namespace":"garden-demo",` +
				`"accessRestrictions":["eu-access-only"]}}`,
		},
		"no project":               {Target{}, "project", "add --project NAME"},
		"no seed":                  {Target{}, "seed", "add --seed NAME"},
		"no shoot":                 {Target{}, "shoot", "add --shoot NAME"},
		"a seed that is not there": {Target{Seed: "none"}, "seed", `seed "none" does not exist`},
	} {
		s := session(t, test.target, interceptor.Funcs{}, one.DeepCopy(), seed.DeepCopy())
		s.garden.Identity = "landscape-local"
		var out bytes.Buffer
		found, err := s.resolve(t.Context(), test.level)
		if err == nil {
			err = (&formatFlag{value: formatJSON}).print(&out, found)
		}
		got := strings.NewReplacer("\n", "", "  ", "", `": `, `":`).Replace(out.String())
		if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got != test.want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestShellStart(t *testing.T) {
	for sh, parts := range map[shell.Shell][]string{
		shell.Bash: {
			`if [ -z "${TRELLISCTL_SESSION_ID:-}" ]; then export TRELLISCTL_SESSION_ID='S1'; fi;`, "alias t='trellisctl';",
			`alias tk='eval "$(trellisctl kubectl-env bash)"';`, `eval "$(trellisctl completion bash)";`,
		},
		shell.Fish: {
			"if not set -q TRELLISCTL_SESSION_ID; set -gx TRELLISCTL_SESSION_ID 'S1'; end;",
			"alias ttv='trellisctl target view';", "trellisctl completion fish | source;",
		},
		shell.PowerShell: {
			"if (-not $Env:TRELLISCTL_SESSION_ID) { $Env:TRELLISCTL_SESSION_ID = 'S1'; };",
			"function t { trellisctl @args };",
			"function tk { trellisctl kubectl-env powershell | Out-String | Invoke-Expression };",
		},
	} {
		got, err := rcScript(sh, "trellisctl", "t", "S1", true)
		for _, part := range parts {
			if err != nil || !strings.Contains(got, part+"\n") {
				t.Errorf("%s: got %s, %v, want %s", sh, got, err, part)
			}
		}
	}
	if _, err := rcScript(shell.Bash, "trellisctl", "t; x", "S1", false); err == nil {
		t.Error("a prefix is a command")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatalf("the script is tried in bash, which has to be installed: %v", err)
	}
	script, err := rcScript(shell.Bash, "trellisctl", "t", "S1", false)
	if err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]string{
		"": "S1\nalias ttv='trellisctl target view'\n", "S0": "S0\nalias ttv='trellisctl target view'\n",
	} {
		command := exec.CommandContext(t.Context(), bash, "-c", script+`echo "$TRELLISCTL_SESSION_ID"; alias ttv`)
		command.Env = []string{"TRELLISCTL_SESSION_ID=" + session}
		if got, err := command.CombinedOutput(); err != nil || string(got) != want {
			t.Errorf("in session %q: got %s, %v", session, got, err)
		}
	}
}

func TestGardensAreConfigured(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "trellisctl.yaml")
	run := func(arguments ...string) (string, error) {
		root := NewCommand()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"--config", path, "config"}, arguments...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for _, step := range []struct {
		arguments []string
		want      string
	}{
		{[]string{"set-garden", "landscape-dev"}, "add --kubeconfig FILE"},
		{[]string{"set-garden", "landscape-dev", "--kubeconfig", "/dev.yaml", "--alias", "dev"}, "Configured garden"},
		{
			[]string{"set-garden", "landscape-live", "--kubeconfig", "/live.yaml"},
			"Configured garden landscape-live in " + path,
		},
		{[]string{"set-garden", "landscape-live", "--alias", "dev"}, "another garden"},
		{[]string{"set-garden", "landscape-dev", "--context", "c"}, "Configured garden"},
		{[]string{"view"}, "gardens:\n- context: c\n  identity: landscape-dev\n  kubeconfig: /dev.yaml\n  name: dev\n- " +
			"identity: landscape-live\n  kubeconfig: /live.yaml\n  name: landscape-live\n"},
		{[]string{"delete-garden", "none"}, `garden "none" is not in`},
		{[]string{"delete-garden", "dev"}, "Garden dev is not in"},
		{[]string{"view", "-o", "json"}, `"name": "landscape-live"`},
		{[]string{"view", "-o", "xml"}, "must be one of yaml, json"},
	} {
		got, err := run(step.arguments...)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, step.want) {
			t.Errorf("%v: got %s", step.arguments, got)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}
