package images

import "testing"

func TestParseSimulatedInstall(t *testing.T) {
	for line, want := range map[string]struct {
		name, version string
		ok            bool
	}{
		"Inst dash (0.5.12-2 Debian:12.11/stable [amd64])":                          {"dash", "0.5.12-2", true},
		"Inst libc6 [2.36-9] (2.36-9+deb12u10 Debian:12.11/stable [amd64])":         {"libc6", "2.36-9+deb12u10", true},
		"Inst libpam0g (1:1.5.2-6 Debian:12.11/stable [amd64]) [libpam-mod:amd64 ]": {"libpam0g", "1:1.5.2-6", true},
		"Conf dash (0.5.12-2 Debian:12.11/stable [amd64])":                          {},
		"Inst broken":                      {},
		"Inst broken (1.0":                 {},
		"The following NEW packages: Inst": {},
		"":                                 {},
	} {
		name, version, ok := parseSimulatedInstall(line)
		if !ok && !want.ok {
			continue
		}
		if name != want.name || version != want.version || ok != want.ok {
			t.Errorf("%q: got %q %q %v", line, name, version, ok)
		}
	}
}
