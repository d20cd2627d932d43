package operatingsystemconfig

import (
	"strings"

	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
)

const (
	// PathTrustedCertificates holds the certificates that machines trust beside those of the operating system.
	PathTrustedCertificates = "/var/lib/worker-pool/trusted-certificates.pem"
	pathTrustScript         = "/var/lib/worker-pool/trust"
	// UnitTrust takes them over.
	UnitTrust = "trusted-certificates.service"
)

// trustScript hands the certificates to the operating system, in the folder that its own program reads, and takes them
// away when there are none any more. Programs read the trusted certificates once, so containerd, which pulls images, is
// started again; containers go on running.
const trustScript = `#!/bin/sh
set -eu
wanted=` + PathTrustedCertificates + `
if [ -d /etc/pki/ca-trust/source/anchors ]; then
  present=/etc/pki/ca-trust/source/anchors/worker-pool.crt
elif [ -d /etc/pki/trust/anchors ]; then
  present=/etc/pki/trust/anchors/worker-pool.crt
elif [ -e /etc/ca-certificates.conf ]; then
  mkdir -p /usr/local/share/ca-certificates
  present=/usr/local/share/ca-certificates/worker-pool.crt
else
  present=/etc/ssl/certs/worker-pool.pem
fi
anew=
if [ -s "$wanted" ]; then
  ! cmp -s "$wanted" "$present" || exit 0
  cp "$wanted" "$present"
else
  [ -e "$present" ] || exit 0
  rm "$present"
  [ ! -e /etc/ca-certificates.conf ] || anew=--fresh
fi
if command -v update-ca-trust >/dev/null; then
  update-ca-trust
else
  update-ca-certificates $anew
fi
systemctl try-restart containerd.service
`

const trustUnit = `[Unit]
Description=Certificates that the worker pool trusts
After=containerd.service
Before=kubelet.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=` + pathTrustScript + `

[Install]
WantedBy=multi-user.target
`

// trust returns what makes machines trust certificates (PEM). It is there without any as well, so that those of earlier
// go.
func trust(certificates string) (extensionsv1alpha1.Unit, []extensionsv1alpha1.File) {
	if certificates != "" {
		certificates = strings.TrimSpace(certificates) + "\n"
	}
	unit := extensionsv1alpha1.Unit{
		Name: UnitTrust, Enable: new(true), Command: new(extensionsv1alpha1.CommandRestart), Content: new(trustUnit),
		FilePaths: []string{PathTrustedCertificates, pathTrustScript},
	}
	return unit, []extensionsv1alpha1.File{
		encoded(PathTrustedCertificates, 0o644, []byte(certificates)),
		encoded(pathTrustScript, 0o755, []byte(trustScript)),
	}
}
