package cri

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// An imageUser is who an image says its containers run as.
type imageUser struct {
	uid  *int64 // numeric, or nil
	name string // if not numeric; "" is root
}

// containerSecurity returns the security context of a container: the pod's,
// overridden field by field by its own (se-1 … se-10).
func containerSecurity(pod *v1.Pod, c *v1.Container, user imageUser, seccompRoot string) (*runtimeapi.LinuxContainerSecurityContext, error) {
	own := c.SecurityContext
	if own == nil {
		own = new(v1.SecurityContext)
	}
	of := pod.Spec.SecurityContext
	if of == nil {
		of = new(v1.PodSecurityContext)
	}
	sc := &runtimeapi.LinuxContainerSecurityContext{
		NamespaceOptions:         podNamespaces(pod),
		Privileged:               own.Privileged != nil && *own.Privileged,
		ReadonlyRootfs:           own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem,
		NoNewPrivs:               own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation, // se-7
		SupplementalGroups:       supplementalGroups(pod),
		SupplementalGroupsPolicy: groupsPolicy(of),
		SelinuxOptions:           selinux(or(own.SELinuxOptions, of.SELinuxOptions)),
	}
	if sc.NamespaceOptions == nil {
		sc.NamespaceOptions = namespaces(pod)
	}
	uid := or(own.RunAsUser, of.RunAsUser)
	if err := mayRunAs(pod, c, or(own.RunAsNonRoot, of.RunAsNonRoot), uid, user); err != nil {
		return nil, err
	}
	switch { // se-4
	case uid != nil:
		sc.RunAsUser = &runtimeapi.Int64Value{Value: *uid}
	case user.uid != nil:
		sc.RunAsUser = &runtimeapi.Int64Value{Value: *user.uid}
	default:
		sc.RunAsUsername = user.name
	}
	if gid := or(own.RunAsGroup, of.RunAsGroup); gid != nil {
		sc.RunAsGroup = &runtimeapi.Int64Value{Value: *gid}
	}
	if caps := own.Capabilities; caps != nil {
		sc.Capabilities = new(runtimeapi.Capability)
		for _, add := range caps.Add {
			sc.Capabilities.AddCapabilities = append(sc.Capabilities.AddCapabilities, string(add))
		}
		for _, drop := range caps.Drop {
			sc.Capabilities.DropCapabilities = append(sc.Capabilities.DropCapabilities, string(drop))
		}
	}
	if own.ProcMount == nil || *own.ProcMount == v1.DefaultProcMount { // se-8
		sc.MaskedPaths, sc.ReadonlyPaths = maskedPaths(), readonlyPaths()
	}
	var err error
	if sc.Seccomp, err = seccomp(or(own.SeccompProfile, of.SeccompProfile), seccompRoot); err != nil {
		return nil, err
	}
	//lint:ignore SA1019 runtimes before the typed profile read this one (se-3)
	sc.Apparmor, sc.ApparmorProfile, err = appArmor(own.AppArmorProfile, pod.Annotations[appArmorAnnotation+c.Name], of.AppArmorProfile)
	return sc, err
}

// appArmorAnnotation, with the container's name, is how a profile was asked for
// before there was a field.
const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"

// appArmor returns a profile, for the CRI as it is and for runtimes that know
// only its old form: the container's own, else the one of its annotation, else
// the pod's (se-3). Nil leaves it to the runtime.
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
	}
	if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
		return nil, "", errors.New("missing localhost apparmor profile name")
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile},
		"localhost/" + *p.LocalhostProfile, nil
}

// mayRunAs refuses root to a container that must not be root (se-5).
func mayRunAs(pod *v1.Pod, c *v1.Container, nonRoot *bool, uid *int64, user imageUser) error {
	who := fmt.Sprintf("pod: %q, container: %s", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	switch {
	case nonRoot == nil || !*nonRoot:
		return nil
	case uid != nil && *uid == 0:
		return fmt.Errorf("container's runAsUser breaks non-root policy (%s)", who)
	case uid != nil:
		return nil
	case user.uid != nil && *user.uid == 0 || user.uid == nil && user.name == "":
		return fmt.Errorf("container has runAsNonRoot and image will run as root (%s)", who)
	case user.uid == nil:
		return fmt.Errorf("container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root (%s)", user.name, who)
	}
	return nil
}

// or returns a, or b if a is nil.
func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

// seccomp returns a profile (se-2). Privileged containers are the runtime's to
// except.
func seccomp(p *v1.SeccompProfile, root string) (*runtimeapi.SecurityProfile, error) {
	if p == nil || p.Type == v1.SeccompProfileTypeUnconfined {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}, nil
	}
	if p.Type == v1.SeccompProfileTypeRuntimeDefault {
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}, nil
	}
	if p.LocalhostProfile == nil || *p.LocalhostProfile == "" {
		//lint:ignore ST1005 the kubelet's words, which the container's waiting message shows
		return nil, errors.New("localhostProfile must be set if seccompProfile type is Localhost.")
	}
	if !filepath.IsLocal(*p.LocalhostProfile) {
		return nil, fmt.Errorf("localhostProfile %q leads out of the directory of profiles", *p.LocalhostProfile)
	}
	return &runtimeapi.SecurityProfile{
		ProfileType:  runtimeapi.SecurityProfile_Localhost,
		LocalhostRef: filepath.Join(root, *p.LocalhostProfile),
	}, nil
}

// podNamespaces returns the pod's namespaces, or nil where the kubelet says
// nothing of them: without a pod security context and host namespaces (rt-21).
func podNamespaces(pod *v1.Pod) *runtimeapi.NamespaceOption {
	if pod.Spec.SecurityContext == nil && !pod.Spec.HostNetwork && !pod.Spec.HostPID && !pod.Spec.HostIPC {
		return nil
	}
	return namespaces(pod)
}

// namespaces returns the namespace modes of the pod (rt-22).
func namespaces(pod *v1.Pod) *runtimeapi.NamespaceOption {
	mode := func(host bool) runtimeapi.NamespaceMode {
		if host {
			return runtimeapi.NamespaceMode_NODE
		}
		return runtimeapi.NamespaceMode_POD
	}
	opts := &runtimeapi.NamespaceOption{
		Network: mode(pod.Spec.HostNetwork), Ipc: mode(pod.Spec.HostIPC), Pid: runtimeapi.NamespaceMode_CONTAINER,
	}
	switch {
	case pod.Spec.HostPID:
		opts.Pid = runtimeapi.NamespaceMode_NODE
	case pod.Spec.ShareProcessNamespace != nil && *pod.Spec.ShareProcessNamespace:
		opts.Pid = runtimeapi.NamespaceMode_POD
	}
	return opts
}

// supplementalGroups returns fsGroup, then the groups of the spec (se-6).
func supplementalGroups(pod *v1.Pod) []int64 {
	sc := pod.Spec.SecurityContext
	if sc == nil {
		return nil
	}
	var groups []int64
	if sc.FSGroup != nil {
		groups = append(groups, *sc.FSGroup)
	}
	return append(groups, sc.SupplementalGroups...)
}

func groupsPolicy(sc *v1.PodSecurityContext) runtimeapi.SupplementalGroupsPolicy {
	if sc.SupplementalGroupsPolicy != nil && *sc.SupplementalGroupsPolicy == v1.SupplementalGroupsPolicyStrict {
		return runtimeapi.SupplementalGroupsPolicy_Strict
	}
	return runtimeapi.SupplementalGroupsPolicy_Merge
}

func selinux(o *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func anyPrivileged(pod *v1.Pod) bool {
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if sc := list[i].SecurityContext; sc != nil && sc.Privileged != nil && *sc.Privileged {
				return true
			}
		}
	}
	return false
}

// maskedPaths are hidden from containers, readonlyPaths may not be written
// (se-8).
func maskedPaths() []string {
	return []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}
}

func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
