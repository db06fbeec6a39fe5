package manifest

import (
	"regexp"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
)

// sysctlName has parts of letters, digits, "-" and "_", divided by dots or
// slashes.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`)

func validatePodSecurity(spec *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	at := path.Child("securityContext")
	if on(spec.ShareProcessNamespace) && spec.HostPID {
		errs = append(errs, field.Invalid(path.Child("shareProcessNamespace"), true, "may not be enabled together with `hostPID`"))
	}
	if spec.HostUsers != nil && !*spec.HostUsers {
		for _, f := range []struct {
			name string
			set  bool
		}{{"hostNetwork", spec.HostNetwork}, {"hostPID", spec.HostPID}, {"hostIPC", spec.HostIPC}} {
			if f.set {
				errs = append(errs, field.Forbidden(path.Child("hostUsers"), "when false, `"+f.name+"` may not be true"))
			}
		}
	}
	sc := spec.SecurityContext
	if sc == nil {
		return errs
	}
	errs = append(errs, validateIDs(sc.RunAsUser, sc.RunAsGroup, at)...)
	if sc.FSGroup != nil {
		errs = append(errs, invalid(at.Child("fsGroup"), *sc.FSGroup, validation.IsValidGroupID(*sc.FSGroup))...)
	}
	for i, gid := range sc.SupplementalGroups {
		errs = append(errs, invalid(at.Child("supplementalGroups").Index(i), gid, validation.IsValidGroupID(gid))...)
	}
	if p := sc.SupplementalGroupsPolicy; p != nil {
		errs = append(errs, oneOf(at.Child("supplementalGroupsPolicy"), *p, v1.SupplementalGroupsPolicyMerge, v1.SupplementalGroupsPolicyStrict)...)
	}
	if p := sc.FSGroupChangePolicy; p != nil {
		errs = append(errs, oneOf(at.Child("fsGroupChangePolicy"), *p, v1.FSGroupChangeOnRootMismatch, v1.FSGroupChangeAlways)...)
	}
	names := make(map[string]bool)
	for i, s := range sc.Sysctls {
		at := at.Child("sysctls").Index(i).Child("name")
		switch {
		case s.Name == "":
			errs = append(errs, field.Required(at, ""))
		case len(s.Name) > 253 || !sysctlName.MatchString(s.Name):
			errs = append(errs, field.Invalid(at, s.Name, "must be the name of a sysctl, such as net.core.somaxconn"))
		case names[s.Name]:
			errs = append(errs, field.Duplicate(at, s.Name))
		}
		switch of, _, _ := sysctl.GetNamespace(s.Name); {
		case spec.HostNetwork && of == sysctl.NetNamespace:
			errs = append(errs, field.Invalid(at, s.Name, "may not be specified when 'hostNetwork' is true"))
		case spec.HostIPC && of == sysctl.IPCNamespace:
			errs = append(errs, field.Invalid(at, s.Name, "may not be specified when 'hostIPC' is true"))
		}
		names[s.Name] = true
	}
	errs = append(errs, validateSeccomp(sc.SeccompProfile, at.Child("seccompProfile"))...)
	return append(errs, validateAppArmor(sc.AppArmorProfile, at.Child("appArmorProfile"))...)
}

func validateContainerSecurity(c *v1.Container, spec *v1.PodSpec, path *field.Path) (errs field.ErrorList) {
	sc := c.SecurityContext
	if sc == nil {
		return nil
	}
	errs = append(errs, validateIDs(sc.RunAsUser, sc.RunAsGroup, path)...)
	if p := sc.ProcMount; p != nil {
		errs = append(errs, oneOf(path.Child("procMount"), *p, v1.DefaultProcMount, v1.UnmaskedProcMount)...)
		if *p == v1.UnmaskedProcMount && (spec.HostUsers == nil || *spec.HostUsers) {
			errs = append(errs, field.Invalid(path.Child("procMount"), *p, "`hostUsers` must be false to use `Unmasked`"))
		}
	}
	if ape := sc.AllowPrivilegeEscalation; ape != nil && !*ape {
		at := path.Child("allowPrivilegeEscalation")
		if on(sc.Privileged) {
			errs = append(errs, field.Invalid(at, false, "cannot be false when `privileged` is true"))
		}
		if sc.Capabilities != nil {
			for _, add := range sc.Capabilities.Add {
				if add == "CAP_SYS_ADMIN" {
					errs = append(errs, field.Invalid(at, false, "cannot be false when `capabilities.add` has CAP_SYS_ADMIN"))
				}
			}
		}
	}
	errs = append(errs, validateSeccomp(sc.SeccompProfile, path.Child("seccompProfile"))...)
	return append(errs, validateAppArmor(sc.AppArmorProfile, path.Child("appArmorProfile"))...)
}

func validateIDs(user, group *int64, path *field.Path) (errs field.ErrorList) {
	if user != nil {
		errs = append(errs, invalid(path.Child("runAsUser"), *user, validation.IsValidUserID(*user))...)
	}
	if group != nil {
		errs = append(errs, invalid(path.Child("runAsGroup"), *group, validation.IsValidGroupID(*group))...)
	}
	return errs
}

func validateSeccomp(p *v1.SeccompProfile, path *field.Path) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	errs = oneOf(path.Child("type"), p.Type, v1.SeccompProfileTypeLocalhost, v1.SeccompProfileTypeRuntimeDefault, v1.SeccompProfileTypeUnconfined)
	at := path.Child("localhostProfile")
	switch {
	case p.Type == v1.SeccompProfileTypeLocalhost && p.LocalhostProfile == nil:
		errs = append(errs, field.Required(at, "must be set when seccomp type is Localhost"))
	case p.Type == v1.SeccompProfileTypeLocalhost:
		errs = append(errs, localPath(at, *p.LocalhostProfile)...)
	case p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(at, *p.LocalhostProfile, "can only be set when seccomp type is Localhost"))
	}
	return errs
}

func validateAppArmor(p *v1.AppArmorProfile, path *field.Path) (errs field.ErrorList) {
	if p == nil {
		return nil
	}
	errs = oneOf(path.Child("type"), p.Type, v1.AppArmorProfileTypeLocalhost, v1.AppArmorProfileTypeRuntimeDefault, v1.AppArmorProfileTypeUnconfined)
	at := path.Child("localhostProfile")
	switch {
	case p.Type == v1.AppArmorProfileTypeLocalhost && (p.LocalhostProfile == nil || *p.LocalhostProfile == ""):
		errs = append(errs, field.Required(at, "must be set when AppArmor type is Localhost"))
	case p.Type != v1.AppArmorProfileTypeLocalhost && p.LocalhostProfile != nil:
		errs = append(errs, field.Invalid(at, *p.LocalhostProfile, "can only be set when AppArmor type is Localhost"))
	}
	return errs
}

func on(p *bool) bool { return p != nil && *p }
