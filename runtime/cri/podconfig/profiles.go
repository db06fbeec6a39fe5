package podconfig

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// appArmorAnnotation is the prefix of the annotations, followed by the container's name,
// that selected a profile before the field appArmorProfile existed.
const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"

// appArmor returns the profile of the container, else that of its annotation, else the
// pod's, as a CRI profile and in the deprecated string form for older runtimes. Nil means
// that the runtime chooses.
func appArmor(own *v1.AppArmorProfile, annotation string, of *v1.AppArmorProfile) (*runtimeapi.SecurityProfile, string, error) {
	p := own
	if p == nil && annotation != "" {
		switch name, local := strings.CutPrefix(annotation, "localhost/"); {
		case local:
			p = &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeLocalhost, LocalhostProfile: &name}
		case annotation == "runtime/default":
			p = &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}
		case annotation == "unconfined":
			p = &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeUnconfined}
		default:
			return nil, "", fmt.Errorf("annotation %s*: invalid AppArmor profile %q", appArmorAnnotation, annotation)
		}
	}
	if p = or(p, of); p == nil {
		return nil, "", nil
	}
	switch p.Type {
	case v1.AppArmorProfileTypeRuntimeDefault:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, "runtime/default", nil
	case v1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, "unconfined", nil
	case v1.AppArmorProfileTypeLocalhost:
		if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
			return nil, "", errors.New("missing localhost apparmor profile name")
		}
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile},
			"localhost/" + *p.LocalhostProfile, nil
	}
	return nil, "", fmt.Errorf("appArmorProfile: unknown type %q", p.Type)
}

// seccomp returns a seccomp profile (rule se-2). Runtimes ignore it for privileged
// containers.
func seccomp(p *v1.SeccompProfile, n Node) (*runtimeapi.SecurityProfile, error) {
	unconfined := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	standard := &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	if p == nil {
		if n.Security.SeccompDefault {
			return standard, nil
		}
		return unconfined, nil
	}
	switch p.Type {
	case v1.SeccompProfileTypeUnconfined:
		return unconfined, nil
	case v1.SeccompProfileTypeRuntimeDefault:
		return standard, nil
	case v1.SeccompProfileTypeLocalhost:
	default:
		return nil, fmt.Errorf("seccompProfile: unknown type %q", p.Type)
	}
	if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
		//lint:ignore ST1005 the kubelet's error text, which the container's waiting message contains
		return nil, errors.New("localhostProfile must be set if seccompProfile type is Localhost.")
	}
	if !filepath.IsLocal(*p.LocalhostProfile) {
		return nil, fmt.Errorf("localhostProfile %q is outside the directory of profiles", *p.LocalhostProfile)
	}
	return &runtimeapi.SecurityProfile{
		ProfileType:  runtimeapi.SecurityProfile_Localhost,
		LocalhostRef: filepath.Join(n.Security.SeccompDir, *p.LocalhostProfile),
	}, nil
}
