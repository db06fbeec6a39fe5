package podconfig

import (
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// containerSecurity returns the effective security context of a container: its own fields,
// else those of the pod (rules se-1 to se-10).
func containerSecurity(in PodInput, inst ContainerInput) (*runtimeapi.LinuxContainerSecurityContext, error) {
	pod, c := in.Pod, inst.Container
	own, of := contexts(pod, c)
	sc := &runtimeapi.LinuxContainerSecurityContext{
		Privileged:         own.Privileged != nil && *own.Privileged,
		ReadonlyRootfs:     own.ReadOnlyRootFilesystem != nil && *own.ReadOnlyRootFilesystem,
		NoNewPrivs:         own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation, // rule se-7
		SupplementalGroups: supplementalGroups(pod, in.Groups),
		SelinuxOptions:     selinux(or(own.SELinuxOptions, of.SELinuxOptions)),
	}
	var err error
	if sc.NamespaceOptions, err = containerNamespaces(in); err != nil {
		return nil, err
	}
	if err := joinTarget(sc.NamespaceOptions, in, inst); err != nil {
		return nil, err
	}
	if err := runAs(sc, pod, c, inst.User); err != nil {
		return nil, err
	}
	if sc.SupplementalGroupsPolicy, err = groupsPolicy(of); err != nil {
		return nil, err
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
	if own.ProcMount == nil || *own.ProcMount != v1.UnmaskedProcMount {
		sc.MaskedPaths, sc.ReadonlyPaths = maskedPaths(in.Node), readonlyPaths()
	}
	if sc.Seccomp, err = seccomp(or(own.SeccompProfile, of.SeccompProfile), in.Node); err != nil {
		return nil, err
	}
	//lint:ignore SA1019 older runtimes read the deprecated field
	sc.Apparmor, sc.ApparmorProfile, err = appArmor(own.AppArmorProfile, pod.Annotations[appArmorAnnotation+c.Name], of.AppArmorProfile)
	return sc, err
}

// contexts returns the security contexts of the container and of the pod, empty if nil.
func contexts(pod *v1.Pod, c *v1.Container) (own *v1.SecurityContext, of *v1.PodSecurityContext) {
	if own = c.SecurityContext; own == nil {
		own = new(v1.SecurityContext)
	}
	if of = pod.Spec.SecurityContext; of == nil {
		of = new(v1.PodSecurityContext)
	}
	return own, of
}

// or returns a, or b if a is nil.
func or[T any](a, b *T) *T {
	if a != nil {
		return a
	}
	return b
}

func selinux(o *v1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

// maskedPaths returns the paths that are hidden in containers (rule se-8).
func maskedPaths(n Node) []string {
	return append([]string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
		"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware",
		"/sys/devices/virtual/powercap",
	}, n.Security.ThermalThrottleDirs...)
}

// readonlyPaths returns the paths that are read-only in containers (rule se-8).
func readonlyPaths() []string {
	return []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}
